"""The function that gives chunks their contextual headers, and the bucket through which Bedrock hands them over."""

from typing import Final

from aws_cdk import Aws, CfnElement, Duration, RemovalPolicy, Stack
from aws_cdk import aws_bedrock as bedrock
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from infra.acknowledgements import acknowledge
from infra.alarms import own_metric, raise_alarm
from infra.constructs.python_function import PythonFunction
from infra.options import Options
from ragstack_common.core.uris import s3_uri
from ragstack_common.settings.ingestion import BATCHES_PASSED_THROUGH, TRANSFORMED_CHUNKS_PREFIX

FOLDER: Final = "contextual_headers"


class ContextualHeaders(Construct):
    """Transforms the chunks of a data source after they are cut and before they are embedded.

    Attributes:
        ingestion: The ingestion configuration of the data source.
    """

    def __init__(self, scope: Construct, construct_id: str, *, options: Options) -> None:
        super().__init__(scope, construct_id)
        self._bucket = self._intermediate_bucket()
        self._function = PythonFunction(
            self,
            "Headers",
            consequence="Bedrock reports the documents of the call as FAILED: `ragstack replay` sends them again.",
            description="Puts a contextual header before the text of every chunk",
            folder=FOLDER,
            # One batch is in memory at a time, as JSON and as what it says; a file has at most 50 MB.
            memory_mb=1024,
            options=options,
            timeout_seconds=300,
        ).function
        self._grant_transformation()
        raise_alarm(
            self,
            "PassedThroughAlarm",
            at_least=1,
            metric=own_metric(BATCHES_PASSED_THROUGH, service=FOLDER, options=options, period=Duration.minutes(15)),
            what_to_do=(
                "Chunks were indexed without contextual headers, because Bedrock passed them in an unknown format:"
                " the log of the function contextual_headers names each batch. Searches find them, but rank them"
                " slightly worse"
            ),
        )
        self.ingestion = self._ingestion()

    def statements(self) -> list[iam.PolicyStatement]:
        """Allow Bedrock to write chunks, to transform them and to read them again.

        Source: Bedrock user guide, kb-custom-transformation, for who writes, invokes and reads. No topic of
        kb-permissions, the guide's list of the role's permissions, is about it.
        """
        own_account = {"StringEquals": {"aws:ResourceAccount": Aws.ACCOUNT_ID}}
        arn = self._function.function_arn
        objects = self._bucket.arn_for_objects("*")
        return [
            # A call may name the function alone or a version of it.
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[arn, f"{arn}:*"]),
            iam.PolicyStatement(actions=["s3:GetObject", "s3:PutObject"], conditions=own_account, resources=[objects]),
            iam.PolicyStatement(actions=["s3:ListBucket"], conditions=own_account, resources=[self._bucket.bucket_arn]),
        ]

    def acknowledge_use(self, service_role: iam.Role) -> None:
        """Accept what the statements allow the role."""
        self._acknowledge_objects(service_role, "*", "Bedrock chooses the keys of the chunks that it hands over")
        function = self._logical_id(self._function)
        acknowledge(
            service_role, "IAM5", "Bedrock may name a version of this function", finding=f"Resource::<{function}.Arn>:*"
        )

    def _intermediate_bucket(self) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Intermediate",
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    abort_incomplete_multipart_upload_after=Duration.days(1),
                    # S3's minimum. Bedrock reads the results as soon as the function answers.
                    expiration=Duration.days(1),
                )
            ],
            # CloudFormation cannot delete a bucket that is not empty; this one is empty after a day.
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        acknowledge(bucket, "S1", "Copies of chunks pass through it for a day, between Bedrock and one function")
        return bucket

    def _grant_transformation(self) -> None:
        """Allow to read, write and list: without the right to list, S3 answers 403 for a missing batch."""
        written = f"{TRANSFORMED_CHUNKS_PREFIX}*"
        for action, pattern, reason in (
            ("s3:GetObject", "*", "Bedrock chooses the keys of the chunks that it hands over"),
            ("s3:PutObject", written, "The function writes under one prefix"),
        ):
            resources = [self._bucket.arn_for_objects(pattern)]
            iam.Grant.add_to_principal(actions=[action], grantee=self._function, resource_arns=resources)
            self._acknowledge_objects(self, pattern, reason)
        iam.Grant.add_to_principal(
            actions=["s3:ListBucket"], grantee=self._function, resource_arns=[self._bucket.bucket_arn]
        )

    def _ingestion(self) -> bedrock.CfnDataSource.VectorIngestionConfigurationProperty:
        """Return the configuration without a chunking strategy, which stays Bedrock's default."""
        function = bedrock.CfnDataSource.TransformationFunctionProperty(
            transformation_lambda_configuration=bedrock.CfnDataSource.TransformationLambdaConfigurationProperty(
                lambda_arn=self._function.function_arn
            )
        )
        return bedrock.CfnDataSource.VectorIngestionConfigurationProperty(
            custom_transformation_configuration=bedrock.CfnDataSource.CustomTransformationConfigurationProperty(
                intermediate_storage=bedrock.CfnDataSource.IntermediateStorageProperty(
                    s3_location=bedrock.CfnDataSource.S3LocationProperty(uri=s3_uri(self._bucket.bucket_name, ""))
                ),
                transformations=[
                    bedrock.CfnDataSource.TransformationProperty(
                        step_to_apply="POST_CHUNKING", transformation_function=function
                    )
                ],
            )
        )

    def _acknowledge_objects(self, construct: Construct, pattern: str, reason: str) -> None:
        bucket = self._logical_id(self._bucket)
        acknowledge(construct, "IAM5", reason, finding=f"Resource::<{bucket}.Arn>/{pattern}")

    def _logical_id(self, construct: Construct) -> str:
        resource = construct.node.default_child
        assert isinstance(resource, CfnElement), "what is made of one resource has it as its default child"
        return str(Stack.of(self).resolve(resource.logical_id))
