"""What an app's models and the endpoints of a team's own stacks have in common."""

from typing import Literal

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam

from slipway.codes.code import Code
from slipway.config.alarm_kinds import MACHINES, REQUESTS, MetricGroup
from slipway.config.alarms_of_modes import ASYNC_REQUESTS, QUEUE
from slipway.errors import Kind, UserError
from slipway.planning.plan import DeploymentPlan
from slipway.rights.pipeline import invoke_statements
from slipway.rights.statements import Place
from slipway.stacks.constructs.alarms import PERIOD_SECONDS, metric_dimensions

MINUTE = cdk.Duration.seconds(PERIOD_SECONDS)


class Invocable:
    """A model's endpoint: its names, the right to call it, its alarms and its metrics.

    Names are literal, so that a stack which uses them needs no export of the endpoint's stack.
    Metrics are those that SageMaker publishes in the environment's region. A metric has a
    `statistic`, such as `p50` or `Average`, a `period`, and the name of a `variant`, which has to
    be given if the config has several.
    """

    _plan: DeploymentPlan

    @property
    def endpoint_name(self) -> str:
        """Returns the name that requests have. Of copies on another endpoint, it is that one's."""
        return self._plan.endpoint_name

    @property
    def endpoint_arn(self) -> str:
        """Returns the ARN of the endpoint, in lower case as policies of IAM need it."""
        return Place(self._plan.environment).arn("sagemaker", f"endpoint/{self.endpoint_name}")

    @property
    def inference_component_name(self) -> str | None:
        """Returns the name that requests have beside the endpoint's; None if they have none.

        It is set with `mode: scale_to_zero`.
        """
        return None if self._plan.component is None else self._plan.component.name

    @property
    def alarms(self) -> list[cloudwatch.IAlarm]:
        """Returns the alarms of the config, for composite alarms and dashboards.

        CloudFormation makes their names, so they are tokens. A stack that uses them refers to the
        endpoint's stack. Those that watch a single update are not among them.
        """
        return [_public(alarm) for alarm in self._alarms()]

    def _alarms(self) -> list[cloudwatch.CfnAlarm]:
        raise NotImplementedError

    def grant_invoke(self, grantee: iam.IGrantable) -> iam.Grant:
        """Gives a principal the right to call the endpoint, and no other endpoint.

        The right covers answers and streams. With `mode: async` it is the right to queue requests,
        to put their objects below `input`, to read answers and failures, and to use the keys of
        both. With `mode: scale_to_zero` it covers the inference component.

        Args:
            grantee: a role, a function or another principal of the environment's account.

        Returns:
            The grant, which resources can depend on.

        Raises:
            UserError: the principal can have no policy, or is in another account. SageMaker's
                endpoints have no policies of their own.
        """
        place, principal = Place(self._plan.environment), grantee.grant_principal
        account = principal.principal_account
        if account not in (None, place.account) and not cdk.Token.is_unresolved(account):
            raise refused(
                Code.STACK_ELSEWHERE,
                f"a principal of account {account} cannot call {self.endpoint_name}, which is in "
                f"account {place.account}",
                "Grant the right to a role of the endpoint's account, and let the other account "
                "assume it.",
            )
        granted: iam.Grant | None = None
        for statement in invoke_statements(self._plan, place):
            each = iam.Grant.add_to_principal(
                grantee=grantee,
                actions=list(statement.actions),
                resource_arns=list(statement.resources),
            )
            granted = each if granted is None else granted.combine(each)
        if granted is None or not granted.success:
            raise refused(
                Code.NOT_FOR_ENDPOINT,
                f"this principal can have no policy that lets it call {self.endpoint_name}",
                "Grant the right to a role, a user or a group.",
            )
        return granted

    def metric_invocations(
        self, *, period: cdk.Duration = MINUTE, variant: str | None = None
    ) -> cloudwatch.Metric:
        """Returns the number of requests; of a queue, those that left it."""
        if self._is_async:
            # SageMaker publishes no number of requests of a queue.
            return self._metric(ASYNC_REQUESTS, "TimeInBacklog", "SampleCount", period, variant)
        return self._metric(REQUESTS, "Invocations", "Sum", period, variant)

    def metric_latency(
        self, *, statistic: str = "p99", period: cdk.Duration = MINUTE, variant: str | None = None
    ) -> cloudwatch.Metric:
        """Returns the time until the container has answered, in microseconds."""
        return self._metric(self._requests, "ModelLatency", statistic, period, variant)

    def metric_client_errors(
        self, *, period: cdk.Duration = MINUTE, variant: str | None = None
    ) -> cloudwatch.Metric:
        """Returns the number of requests that the container answered 4XX."""
        return self._metric(self._requests, "Invocation4XXErrors", "Sum", period, variant)

    def metric_server_errors(
        self, *, period: cdk.Duration = MINUTE, variant: str | None = None
    ) -> cloudwatch.Metric:
        """Returns the number of requests that were answered 5XX; of a queue, of all that failed."""
        name = "InvocationFailures" if self._is_async else "Invocation5XXErrors"
        return self._metric(self._requests, name, "Sum", period, variant)

    def metric_backlog(
        self, *, statistic: str = "Average", period: cdk.Duration = MINUTE
    ) -> cloudwatch.Metric:
        """Returns the number of requests in the queue; raises `UserError` without a queue."""
        if not self._is_async:
            raise refused(
                Code.NOT_FOR_ENDPOINT,
                f"{self.endpoint_name} has no queue, and so no backlog",
                "Set `endpoint.mode: async`, or ask for another metric.",
            )
        return self._metric(QUEUE, "ApproximateBacklogSize", statistic, period, None)

    def metric_utilization(
        self,
        of: Literal["CPU", "Disk", "GPU", "GPUMemory", "Memory"],
        *,
        statistic: str = "Maximum",
        period: cdk.Duration = MINUTE,
        variant: str | None = None,
    ) -> cloudwatch.Metric:
        """Returns how much of the machines is in use, in percent; processors and GPUs add up."""
        return self._metric(MACHINES, f"{of}Utilization", statistic, period, variant)

    @property
    def _is_async(self) -> bool:
        return self._plan.config.endpoint.queue is not None

    @property
    def _requests(self) -> MetricGroup:
        return ASYNC_REQUESTS if self._is_async else REQUESTS

    def _metric(
        self,
        group: MetricGroup,
        name: str,
        statistic: str,
        period: cdk.Duration,
        variant: str | None,
        /,
    ) -> cloudwatch.Metric:
        plan = self._plan
        dimensions = metric_dimensions(plan, "", group)
        if "VariantName" in dimensions:
            dimensions["VariantName"] = self._variant(variant)
        return cloudwatch.Metric(
            namespace=group.namespace,
            metric_name=name,
            dimensions_map=dimensions,
            statistic=statistic,
            period=period,
            region=plan.environment.region,
        )

    def _variant(self, name: str | None) -> str:
        names = [variant.name for variant in self._plan.variants]
        if name is None and len(names) == 1:
            return names[0]
        if name not in names:
            asked = "several variants" if name is None else f"no variant {name!r}"
            raise refused(
                Code.NOT_FOR_ENDPOINT,
                f"{self.endpoint_name} has {asked}, and each has metrics of its own",
                f"Name one with `variant=`: {', '.join(names)}.",
            )
        return name


def refused(code: Code, message: str, remedy: str) -> UserError:
    """Returns the error of a call that the project's files do not allow."""
    return UserError.of(code, message, remedy, kind=Kind.VALUE)


def _public(alarm: cloudwatch.CfnAlarm) -> cloudwatch.IAlarm:
    """Returns an alarm as the CDK's constructs take it; it adds nothing to a template."""
    made = alarm.node.try_find_child("Alarm")
    if made is None:
        return cloudwatch.Alarm.from_alarm_arn(alarm, "Alarm", alarm.attr_arn)
    return made  # type: ignore[return-value]  # the CDK gives back what was made there
