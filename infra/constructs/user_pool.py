"""A user pool of Amazon Cognito: people, their groups, and the page on which they sign in."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws, Duration, Fn, RemovalPolicy
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from infra.access_options import Mfa
from infra.acknowledgements import acknowledge
from infra.constructs.inline_resource import inline_resource
from infra.options import Options

ACCEPTED: Final = {
    "COG2": "The deployer decides with mfa=required, because every person then needs an authenticator app",
    "COG3": "Threat protection needs the plan Plus, which costs more than the rest of an idle stack",
    "COG8": "The same",
}

_CREATE_GROUPS: Final = """\
import json
import boto3
import cfnresponse

def handler(event, context):
    properties = event["ResourceProperties"]
    status, reason = cfnresponse.SUCCESS, None
    if event["RequestType"] != "Delete":
        try:
            client = boto3.client("cognito-idp")
            for name in json.loads(properties["Groups"]):
                try:
                    client.create_group(UserPoolId=properties["Pool"], GroupName=name)
                except client.exceptions.GroupExistsException:
                    pass
        except Exception as error:
            status, reason = cfnresponse.FAILED, f"The groups cannot be created: {error}"
    cfnresponse.send(event, context, status, {}, "groups", reason=reason)
"""
"""It removes no group, because the memberships would be lost with it."""

GROUPS_SECONDS: Final = 300
"""Enough for thousands of groups. Source: quotas of Amazon Cognito, about 25 changes of groups a second."""


@dataclass(frozen=True)
class Issuer:
    """Who issues the tokens of people.

    Attributes:
        url: The issuer, as its tokens write it.
        audience: The audiences of tokens, separated by commas.
        login_domain: Base URL of the sign-in page, if the stacks created it.
        token_endpoint: Where another issuer gives tokens for codes, if its metadata was read.
    """

    url: str
    audience: str
    login_domain: str | None = None
    token_endpoint: str | None = None


class UserPool(Construct):
    """People invited by an administrator, or an existing pool. Kept when the stack is deleted.

    Args:
        groups: The groups that must exist; others stay.

    Attributes:
        issuer: The pool as an issuer of tokens.
    """

    def __init__(self, scope: Construct, construct_id: str, *, options: Options, groups: Sequence[str]) -> None:
        super().__init__(scope, construct_id)
        pool = (
            cognito.UserPool.from_user_pool_id(self, "Adopted", options.user_pool)
            if options.user_pool
            else self._new_pool(options)
        )
        if groups:
            self._create_groups(pool, groups)
        # Prefixes are unique in a Region, among all accounts: the id of the stack is.
        prefix = f"ragstack-{Fn.select(2, Fn.split('/', Aws.STACK_ID))}"
        domain = pool.add_domain("Domain", cognito_domain=cognito.CognitoDomainOptions(domain_prefix=prefix))
        self._client = client = pool.add_client(
            "Client",
            access_token_validity=Duration.hours(1),
            # Nothing but the sign-in page and refresh tokens.
            auth_flows=cognito.AuthFlow(user_srp=False),
            enable_token_revocation=True,
            generate_secret=False,
            id_token_validity=Duration.hours(1),
            o_auth=cognito.OAuthSettings(
                callback_urls=[*options.callback_urls],
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.OPENID, cognito.OAuthScope.EMAIL, cognito.OAuthScope.PROFILE],
            ),
            prevent_user_existence_errors=True,
            refresh_token_validity=Duration.days(7),
            supported_identity_providers=[cognito.UserPoolClientIdentityProvider.COGNITO],
        )
        self._callback_urls = options.callback_urls
        url = f"https://cognito-idp.{Aws.REGION}.{Aws.URL_SUFFIX}/{pool.user_pool_id}"
        if isinstance(pool, cognito.UserPool):
            url = pool.user_pool_provider_url
        self.issuer = Issuer(url, client.user_pool_client_id, domain.base_url())

    def add_callback(self, url: str) -> None:
        """Allow the sign-in and sign-out pages to redirect to a URL.

        It is known after the functions, which know the client.
        """
        resource = self._client.node.default_child
        assert isinstance(resource, cognito.CfnUserPoolClient), "a client's default child is its resource"
        resource.callback_ur_ls = [*dict.fromkeys((*self._callback_urls, url))]  # the deployer may have named it too
        resource.logout_ur_ls = [url]

    def _new_pool(self, options: Options) -> cognito.UserPool:
        is_required = options.mfa is Mfa.REQUIRED
        sender = options.email_sender
        pool = cognito.UserPool(
            self,
            "Pool",
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            deletion_protection=True,
            email=None
            if sender is None
            else cognito.UserPoolEmail.with_ses(
                from_email=sender, ses_region=Aws.REGION, ses_verified_domain=sender.rpartition("@")[2]
            ),
            feature_plan=cognito.FeaturePlan.ESSENTIALS,
            keep_original=cognito.KeepOriginalAttrs(email=True),
            mfa=cognito.Mfa.REQUIRED if is_required else cognito.Mfa.OFF,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False) if is_required else None,
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_digits=True,
                require_lowercase=True,
                require_symbols=True,
                require_uppercase=True,
                temp_password_validity=Duration.days(3),
            ),
            # Also kept when a first deployment fails: the rollback could not delete a protected pool, and would fail.
            removal_policy=RemovalPolicy.RETAIN,
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(email=True),
            sign_in_case_sensitive=False,
            standard_attributes=cognito.StandardAttributes(email=cognito.StandardAttribute(required=True)),
        )
        for rule, reason in ACCEPTED.items():
            acknowledge(pool, rule, reason)
        return pool

    def _create_groups(self, pool: cognito.IUserPool, groups: Sequence[str]) -> None:
        created, role = inline_resource(
            self,
            "Groups",
            code=_CREATE_GROUPS,
            description="Creates the groups of the access file",
            properties={"Pool": pool.user_pool_id, "Groups": json.dumps([*groups])},
            timeout_seconds=GROUPS_SECONDS,
            type_name="UserPoolGroups",
        )
        created.node.add_dependency(pool.grant(role, "cognito-idp:CreateGroup"))
