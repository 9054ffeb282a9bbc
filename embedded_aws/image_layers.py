"""ECR's API: moto's, and the layers of images, which moto counts but does not keep.

An image is copied from one registry to another by digest. ECR refuses a layer or a manifest with
another digest, and an image without its layers. The layers lie in a bucket, as ECR's own do.
"""

import hashlib
import json
from typing import Any, ClassVar

from moto.core.responses import ActionResult
from moto.ecr.responses import ECRResponse

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.clients import LoopbackClients


class EcrApi(ECRResponse):  # type: ignore[misc]  # moto ships no type information
    """One request; the methods are the operations' names in moto's spelling."""

    clients: ClassVar[LoopbackClients]

    def complete_layer_upload(self) -> Any:
        """Keeps a layer whose digest is right."""
        upload = self._repository().uploads.get(self._get_param("uploadId"))
        if upload is not None:
            digest = f"sha256:{hashlib.sha256(upload.layer_parts).hexdigest()}"
            if digest not in self._get_param("layerDigests"):
                raise ApiError(
                    "InvalidLayerException", f"The digest of the layer parts is {digest}."
                )
            s3, bucket = self._bucket()
            s3.create_bucket(Bucket=bucket)
            s3.put_object(Bucket=bucket, Key=digest, Body=bytes(upload.layer_parts))
        return super().complete_layer_upload()

    def get_download_url_for_layer(self) -> Any:
        """Answers a presigned address of S3."""
        digest = self._get_param("layerDigest")
        self._require([digest])
        s3, bucket = self._bucket()
        address = s3.generate_presigned_url("get_object", {"Bucket": bucket, "Key": digest})
        return ActionResult({"downloadUrl": address, "layerDigest": digest})

    def put_image(self) -> Any:
        """Checks an image that comes with its digest; moto takes any."""
        manifest, digest = self._get_param("imageManifest"), self._get_param("imageDigest")
        if digest is not None:
            found = f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"
            if digest != found:
                raise ApiError(
                    "ImageDigestDoesNotMatchException", f"The digest of the manifest is {found}."
                )
            content = json.loads(manifest)
            self._require([part["digest"] for part in (content["config"], *content["layers"])])
        return super().put_image()

    def _repository(self) -> Any:
        return self.ecr_backend._get_repository(self._get_param("repositoryName"))

    def _require(self, digests: list[str]) -> None:
        missing = [digest for digest in digests if digest not in self._repository().layers]
        if missing:
            raise ApiError("LayersNotFoundException", f"There is no layer {', '.join(missing)}.")

    def _bucket(self) -> tuple[Any, str]:
        # In one region, where a bucket may be made twice.
        return self.clients.client("s3", "us-east-1"), f"ecr-layers-{self.region}"
