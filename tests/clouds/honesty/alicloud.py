"""The official SDKs of Alibaba Cloud drive the fake: describe, page, scale out, remove, errors.

The ESS SDK speaks API version 2022-02-22. Version 2014-08-28 is driven through the SDK's generic client, with the
vendor's own signing in both signature versions.
"""

import json
import socket
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from alibabacloud_ecs20140526 import models as ecs_models
from alibabacloud_ecs20140526.client import Client as EcsClient
from alibabacloud_ess20220222 import models as ess_models
from alibabacloud_ess20220222.client import Client as EssClient
from alibabacloud_tea_openapi.client import Client as OpenApiClient
from alibabacloud_tea_openapi.utils_models import Config, OpenApiRequest, Params
from darabonba.runtime import RuntimeOptions

REGION = "cn-hangzhou"
SCENARIO = {
    "groups": [
        {"id": "asg-1", "name": "one", "min": 0, "max": 30, "desired": 15, "running": 15, "tags": {"team": "a b*~+/="}},
        {"id": "asg-2", "name": "two", "min": 0, "max": 5},
    ]
}


class Server:
    """The fake, served over TLS. All names of the cloud lead to it."""

    def __init__(self, binary, folder):
        scenario, ca = Path(folder, "scenario.json"), Path(folder, "ca.pem")
        scenario.write_text(json.dumps(SCENARIO))
        command = [binary, "alicloud", "--now", "--scenario", scenario, "--ca-out", ca]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        addresses = json.loads(self.process.stdout.readline())
        self.ca = str(ca)
        self.plain = addresses["http"]
        host, port = addresses["https"].rsplit(":", 1)
        real = socket.getaddrinfo

        def lookup(name, wanted, *rest, **more):
            if isinstance(name, str) and name.endswith(".aliyuncs.com"):
                name, wanted = host, int(port)
            return real(name, wanted, *rest, **more)

        socket.getaddrinfo = lookup

    def control(self, what, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(f"http://{self.plain}/_ctl/{what}", data) as answer:
            return json.load(answer)

    def advance(self, seconds):
        self.control("advance", {"ms": seconds * 1000})


def config(product, secret="testsecret", **more):
    endpoint = f"{product}.{REGION}.aliyuncs.com"
    return Config(
        access_key_id="testid", access_key_secret=secret, region_id=REGION, endpoint=endpoint, protocol="HTTPS", **more
    )


def same(what, seen, expected):
    if seen != expected:
        raise SystemExit(f"honesty: {what}: saw {seen!r}, expected {expected!r}")
    print(f"ok  {what}")


def refused(what, call, code):
    try:
        call()
    except Exception as error:  # The SDK has several kinds; all carry the code.
        same(what, getattr(error, "code", None), code)
    else:
        raise SystemExit(f"honesty: {what}: was not refused, expected {code}")


def pages(ess, runtime):
    seen = []
    for number in (1, 2):
        request = ess_models.DescribeScalingInstancesRequest(
            region_id=REGION, scaling_group_id="asg-1", page_number=number, page_size=10
        )
        body = ess.describe_scaling_instances_with_options(request, runtime).body
        same(f"total on page {number}", body.total_count, 15)
        seen += [instance.instance_id for instance in body.scaling_instances]
    same("instances on two pages", (len(seen), len(set(seen))), (15, 15))
    return seen


def newer_version(server, runtime):
    ess = EssClient(config("ess"))
    request = ess_models.DescribeScalingGroupsRequest(region_id=REGION, scaling_group_ids=["asg-1", "asg-none"])
    groups = ess.describe_scaling_groups_with_options(request, runtime).body.scaling_groups
    same("one group of two asked for", [group.scaling_group_id for group in groups], ["asg-1"])
    group = groups[0]
    sizes = (group.min_size, group.max_size, group.desired_capacity, group.total_capacity, group.active_capacity)
    same("sizes", sizes, (0, 30, 15, 15, 15))
    same("tags", [(tag.tag_key, tag.tag_value) for tag in group.tags], [("team", "a b*~+/=")])
    instances = pages(ess, runtime)

    request = ess_models.ScaleWithAdjustmentRequest(
        scaling_group_id="asg-1",
        adjustment_type="QuantityChangeInCapacity",
        adjustment_value=2,
        sync_activity=True,
        client_token="honest-1",
        activity_metadata='{"who":"an honest client, with * ~ + and /"}',
    )
    first = ess.scale_with_adjustment_with_options(request, runtime).body
    same("scale out", first.activity_type, "ScaleOut")
    again = ess.scale_with_adjustment_with_options(request, runtime).body
    same("the same token, the same activity", again.scaling_activity_id, first.scaling_activity_id)
    server.advance(120)
    request = ess_models.DescribeScalingActivitiesRequest(
        region_id=REGION, scaling_group_id="asg-1", scaling_activity_ids=[first.scaling_activity_id]
    )
    activity = ess.describe_scaling_activities_with_options(request, runtime).body.scaling_activities[0]
    same("activity", (activity.status_code, activity.created_capacity), ("Successful", 2))
    same("metadata came through", json.loads(activity.activity_metadata)["who"], "an honest client, with * ~ + and /")

    def remove(*ids):
        request = ess_models.RemoveInstancesRequest(
            region_id=REGION, scaling_group_id="asg-1", instance_ids=list(ids), remove_policy="release"
        )
        return ess.remove_instances_with_options(request, runtime).body

    remove(*instances[:12])
    refused("a second removal at once", lambda: remove(instances[12]), "ScalingActivityInProgress")
    server.advance(120)
    refused("an instance that is gone", lambda: remove(instances[0]), "InvalidInstanceId.NotFound")
    request = ess_models.DescribeScalingInstancesRequest(region_id=REGION, scaling_group_id="asg-1", page_size=50)
    left = ess.describe_scaling_instances_with_options(request, runtime).body
    same("instances left", left.total_count, 5)
    request = ess_models.DescribeScalingConfigurationsRequest(region_id=REGION, scaling_group_id="asg-1")
    configuration = ess.describe_scaling_configurations_with_options(request, runtime).body.scaling_configurations[0]
    same("types of the configuration", configuration.instance_types, ["ecs.g7.xlarge"])
    wrong = EssClient(config("ess", secret="wrong"))
    request = ess_models.DescribeScalingGroupsRequest(region_id=REGION)
    refused("a wrong secret", lambda: wrong.describe_scaling_groups_with_options(request, runtime), "SignatureDoesNotMatch")


def older_version(server, runtime):
    for name, algorithm in (("ACS3", None), ("1.0", "v2")):
        client = OpenApiClient(config("ess", signature_algorithm=algorithm))

        def call(action, **query):
            params = Params(
                action=action, version="2014-08-28", protocol="HTTPS", pathname="/", method="POST", auth_type="AK",
                style="RPC", req_body_type="formData", body_type="json",
            )
            return client.call_api(params, OpenApiRequest(query={"RegionId": REGION, **query}), runtime)["body"]

        body = call("DescribeScalingGroups", **{"ScalingGroupId.1": "asg-2"})
        group = body["ScalingGroups"]["ScalingGroup"][0]
        same(f"2014-08-28, signature {name}: nested lists", group["VSwitchIds"], {"VSwitchId": ["vsw-a"]})
        body = call(
            "ScaleWithAdjustment", ScalingGroupId="asg-2", AdjustmentType="QuantityChangeInCapacity", AdjustmentValue="1",
            ActivityMetadata='{"who":"a b*~+/="}',
        )
        same(f"2014-08-28, signature {name}: scale out", body["ActivityType"], "ScaleOut")
        server.advance(120)
        body = call("DescribeScalingInstances", ScalingGroupId="asg-2", PageSize="50")
        ids = [instance["InstanceId"] for instance in body["ScalingInstances"]["ScalingInstance"]]
        same(f"2014-08-28, signature {name}: one instance", len(ids), 1)
        call("RemoveInstances", ScalingGroupId="asg-2", **{"InstanceId.1": ids[0]})
        server.advance(120)


def machines(runtime):
    ecs = EcsClient(config("ecs"))
    request = ecs_models.DescribeInstanceTypesRequest(instance_types=["ecs.g7.xlarge", "ecs.g8y.large"])
    kinds = ecs.describe_instance_types_with_options(request, runtime).body.instance_types.instance_type
    seen = sorted((kind.instance_type_id, kind.cpu_core_count, kind.cpu_architecture) for kind in kinds)
    same("instance types", seen, [("ecs.g7.xlarge", 4, "X86"), ("ecs.g8y.large", 2, "ARM")])
    request = ecs_models.DescribeInstancesRequest(region_id=REGION, max_results=100)
    instances = ecs.describe_instances_with_options(request, runtime).body.instances.instance
    same("machines", {instance.instance_charge_type for instance in instances}, {"PostPaid"})


def main():
    with tempfile.TemporaryDirectory() as folder:
        server = Server(sys.argv[1], folder)
        try:
            runtime = RuntimeOptions(ca=server.ca, autoretry=False, read_timeout=10000, connect_timeout=5000)
            newer_version(server, runtime)
            older_version(server, runtime)
            machines(runtime)
            # The vendor's client writes a space as +, which the cloud takes and a careful client avoids.
            strange = [text for text in server.control("violations") if "a space written as +" not in text]
            same("violations", strange, [])
        finally:
            server.process.terminate()
            server.process.wait()
    print("honesty: the vendor's SDKs and the fake of Alibaba Cloud agree")


if __name__ == "__main__":
    main()
