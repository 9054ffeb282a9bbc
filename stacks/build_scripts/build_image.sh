#!/usr/bin/env bash
# Builds $IMAGE_URI, the stage $TARGET of $DOCKERFILE, on $BASE_IMAGE, and pushes it. CodeBuild runs
# this in the folder with the sources of the image.
set -euo pipefail

repository=${IMAGE_URI#*/}
tag=${repository##*:}
repository=${repository%:*}

# Tags are immutable, and a stack that rolls back asks for what it had before.
images=$(aws ecr batch-get-image --repository-name "$repository" --image-ids "imageTag=$tag" \
  --query "length(images)" --output text)
if [[ $images != 0 ]]; then
  echo "$IMAGE_URI is there already: nothing to build."
  exit 0
fi

# A company's mirrors may have certificates of its own authority: Docker reads those of a registry
# from a folder of its name, the steps of the build get them as a secret, which no image keeps.
options=()
if [[ -n ${CA_BUNDLE:-} ]]; then
  authorities=$(mktemp)
  aws s3 cp --only-show-errors "$CA_BUNDLE" "$authorities"
  certificates=${DOCKER_CERTIFICATES:-/etc/docker/certs.d}/${BASE_IMAGE%%/*}
  mkdir -p "$certificates"
  cp "$authorities" "$certificates/ca.crt"
  options+=(--secret "id=ca_bundle,src=$authorities")
fi
# The arguments of the Dockerfiles that say where packages come from; without them, the public places.
for name in UV_DEFAULT_INDEX UV_PYTHON_INSTALL_MIRROR NEURON_INDEX; do
  if [[ -n ${!name:-} ]]; then
    options+=(--build-arg "$name=${!name}")
  fi
done

# Every ECR registry wants a log-in of its own; the public one of NVIDIA, and mirrors elsewhere, get none.
for registry in "${IMAGE_URI%%/*}" "${BASE_IMAGE%%/*}"; do
  if [[ $registry =~ ^[0-9]{12}\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(\.cn)?$ ]]; then
    aws ecr get-login-password --region "${BASH_REMATCH[1]}" \
      | docker login --username AWS --password-stdin "$registry"
  fi
done

# SageMaker refuses the index that attestations make of an image, and wants the media types of
# Docker. This way they hold whichever store the Docker of the build machine keeps its images in.
docker buildx build --platform linux/amd64 --provenance=false --sbom=false --progress plain \
  --build-arg "BASE_IMAGE=$BASE_IMAGE" ${options[@]+"${options[@]}"} --file "$DOCKERFILE" --target "$TARGET" \
  --output "type=image,name=$IMAGE_URI,oci-mediatypes=false,push=true" .
