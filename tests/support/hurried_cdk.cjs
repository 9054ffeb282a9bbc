// The CDK CLI looks every two seconds whether a change is done: in AWS it takes minutes, and here less.
const wait = globalThis.setTimeout;
const hurried = (call, milliseconds, ...rest) =>
  wait(call, milliseconds === 2000 ? 100 : milliseconds, ...rest);
globalThis.setTimeout = Object.defineProperties(hurried, Object.getOwnPropertyDescriptors(wait));
