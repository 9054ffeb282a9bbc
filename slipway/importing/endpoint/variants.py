"""The variants of an endpoint configuration, as the section `endpoint` has them."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from slipway.config.sections.endpoint import SHADOW_VARIANT_NAME, AmiVersion
from slipway.deployed.answers import Answer
from slipway.deployed.described import Described, Raw
from slipway.deployed.fields import CORE_DUMP, PREFIX_ROUTING, VARIANT, instance_types_of
from slipway.importing.endpoint.components import component_fields, scales_to_zero
from slipway.importing.endpoint.data import as_prefix
from slipway.importing.endpoint.findings import Findings
from slipway.planning.placements import DEFAULT_VARIANT_NAME

# What a config can say; an answer may have a value that AWS added since.
_KNOWN: Mapping[str, Sequence[str]] = {
    "routing": ("LEAST_OUTSTANDING_REQUESTS", "RANDOM", "PREFIX_AWARE"),
    "inference_ami_version": get_args(AmiVersion),
}
_REASONS: Mapping[str, str] = {
    "AcceleratorType": "AWS ended Elastic Inference.",
    "ManagedInstanceScaling": "it scales the instances of inference components.",
}


def variant_fields(described: Described, found: Findings) -> dict[str, Any]:
    variants = [
        _Variant(
            raw,
            described.endpoint,
            found,
            # The instances of components follow the copies.
            is_scaled=described.target_of(raw["VariantName"]) is not None
            or bool(described.components),
        )
        for raw in _production(described)
    ]
    first = variants[0]
    section: dict[str, Any] = {"instances": first.instances, "instance_count": first.count}
    if len(variants) > 1:
        section["variants"] = [each.section(first) for each in variants]
    elif first.name != DEFAULT_VARIANT_NAME:
        found.change("VariantName", first.name, f"{DEFAULT_VARIANT_NAME} now.")
    for each in variants[1:]:
        each.drop_shared(first.shared, found)
    section |= first.shared
    if "routing" not in section:
        section["routing"] = "random"
        found.guess(
            ("endpoint", "routing"),
            "the endpoint sets none, and SageMaker then takes a random one.",
        )
    if (shadow := _shadow(described, first, found)) is not None:
        section["shadow"] = shadow
    if scales_to_zero(described):
        if first.count != 1:
            found.change(
                "InitialInstanceCount", first.count, "1 now. Then instances follow copies."
            )
        section |= {"instance_count": 1, **component_fields(described, first.answer, found)}
    for each in variants:
        prefix = f"{each.name}." if len(variants) > 1 else ""
        found.leave_out_rest(each.answer, prefix, **_REASONS)
    return section


def _production(described: Described) -> Sequence[Raw]:
    return described.config["ProductionVariants"]  # type: ignore[no-any-return]


class _Variant:
    def __init__(self, raw: Raw, endpoint: Raw, found: Findings, *, is_scaled: bool) -> None:
        self.answer = answer = Answer(raw)
        self.name = str(answer.take("VariantName"))
        answer.take("ModelName")
        self.instances = _take_instances(answer)
        self.shared = answer.fields(VARIANT)
        live = _live(endpoint, self.name)
        count, weight = self.shared.pop("instance_count", None), self.shared.pop("weight", None)
        # Scaling moves the count all the time: the initial one is as good as any other.
        self.count = count if is_scaled else self._now("InstanceCount", count, live, found)
        # SageMaker answers with the nearest number of 32 bits.
        self.weight = float(f"{self._now('Weight', weight, live, found) or 1:.6g}")
        for field, known in _KNOWN.items():
            if field in self.shared and self.shared[field] not in known:
                answer.put(self.shared.pop(field), *VARIANT[field])
        if "routing" in self.shared:
            self.shared["routing"] = self.shared["routing"].lower()
        if self.shared.get("routing") == "prefix_aware":
            self.shared["prefix_routing"] = answer.fields(PREFIX_ROUTING)
        if not self.shared.get("ssm_access"):
            self.shared.pop("ssm_access", None)  # off, as without it
        if core_dump := answer.fields(CORE_DUMP):
            core_dump["destination"] = as_prefix(core_dump["destination"])
            self.shared["core_dump"] = core_dump
        if "capacity_reservation_arn" in self.shared:
            # The only preference that there is.
            answer.take("CapacityReservationConfig", "CapacityReservationPreference")

    def section(self, first: "_Variant") -> dict[str, Any]:
        """Returns the variant among others; it leaves out what it has in common with the first."""
        section: dict[str, Any] = {"name": self.name, "weight": self.weight}
        if self.instances != first.instances:
            section["instances"] = self.instances
        if self.count != first.count:
            section["instance_count"] = self.count
        return section

    def drop_shared(self, kept: Mapping[str, Any], found: Findings) -> None:
        """Lists the settings that the first variant has in another way."""
        for field in dict.fromkeys([*self.shared, *kept]):
            mine, first = self.shared.get(field), kept.get(field)
            # The time to provision matters with several types alone.
            if mine != first and (field != "instance_provision_timeout_seconds" or mine):
                found.change(
                    f"{self.name}: {field}",
                    "SageMaker's default" if mine is None else mine,
                    f"{first or 'Slipway chooses it'} now. All variants share it.",
                )

    def _now(self, what: str, initial: Any, live: Raw, found: Findings) -> Any:
        """Returns the value that the endpoint has at present, which may not be the initial one."""
        now = live.get(f"Desired{what}", initial)
        if now != initial:
            found.change(f"{self.name}: initial {what}", initial, f"{now:.6g} now, as it is live.")
        return now


def _take_instances(answer: Answer) -> list[str]:
    """Returns the instance types, the preferred one first."""
    pool, preferred = answer.take("InstancePools") or (), answer.take("InstanceType")
    others = {
        each["InstanceType"]: each["ModelNameOverride"]
        for each in pool
        if "ModelNameOverride" in each
    }
    if others:
        answer.put(others, "InstancePools", "ModelNameOverride")
    return list(instance_types_of({"InstancePools": pool, "InstanceType": preferred}))


def _shadow(described: Described, first: _Variant, found: Findings) -> dict[str, Any] | None:
    """Returns the section of the shadow variant; None without one that the section can say."""
    declared = described.config.get("ShadowProductionVariants") or ()
    if not declared:
        return None
    raw = declared[0]
    shadow = _Variant(raw, _as_shadows(described.endpoint), found, is_scaled=False)
    if raw.get("ModelName") != _production(described)[0].get("ModelName"):
        found.leave_out(
            f"shadow variant {shadow.name}",
            str(raw.get("ModelName")),
            "it serves another model than the endpoint. Import it with `--call`, and write its "
            "`model`, `serving` and `artifacts` into `shadow`.",
        )
        return None
    if shadow.name != SHADOW_VARIANT_NAME:
        found.change("shadow variant", shadow.name, f"{SHADOW_VARIANT_NAME} now.")
    shadow.drop_shared(first.shared, found)
    found.leave_out_rest(shadow.answer, f"{shadow.name}.", **_REASONS)
    # A sum of binary fractions; four digits are more than anybody sets.
    percent = round(100 * shadow.weight / (first.weight or 1), 4)
    return {
        "sampling_percent": int(percent) if percent == int(percent) else percent,
        "instances": shadow.instances,
        "instance_count": shadow.count,
    }


def _as_shadows(endpoint: Raw) -> Raw:
    return {"ProductionVariants": endpoint.get("ShadowProductionVariants") or ()}


def _live(endpoint: Raw, name: str) -> Raw:
    """Returns the answer of DescribeEndpoint about a variant; empty where it has none."""
    variants: Sequence[Raw] = endpoint.get("ProductionVariants") or ()
    return next((each for each in variants if each["VariantName"] == name), {})
