"""A user pool of Amazon Cognito: people, their groups, and the page on which they sign in."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Aws, Duration, Fn, RemovalPolicy
from aws_cdk import aws_cognito as cognito
from constructs import Construct

from infra.acknowledgements import acknowledge

ACCEPTED: Final = {
    "COG2": "People choose whether they use a second factor; docs/CONFIGURATION.md says how to require one",
    "COG3": "Threat protection needs the plan Plus, which costs more than the rest of an idle stack",
    "COG8": "The same",
}


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
    """People invited by an administrator. Kept when the stack is deleted.

    Attributes:
        issuer: The pool as an issuer of tokens.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, callback_urls: Sequence[str], groups: Sequence[str]
    ) -> None:
        super().__init__(scope, construct_id)
        pool = cognito.UserPool(
            self,
            "Pool",
            account_recovery=cognito.AccountRecovery.EMAIL_ONLY,
            deletion_protection=True,
            feature_plan=cognito.FeaturePlan.ESSENTIALS,
            keep_original=cognito.KeepOriginalAttrs(email=True),
            mfa=cognito.Mfa.OPTIONAL,
            mfa_second_factor=cognito.MfaSecondFactor(otp=True, sms=False),
            password_policy=cognito.PasswordPolicy(
                min_length=12,
                require_digits=True,
                require_lowercase=True,
                require_symbols=True,
                require_uppercase=True,
                temp_password_validity=Duration.days(3),
            ),
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            self_sign_up_enabled=False,
            sign_in_aliases=cognito.SignInAliases(email=True),
            sign_in_case_sensitive=False,
            standard_attributes=cognito.StandardAttributes(email=cognito.StandardAttribute(required=True)),
        )
        for rule, reason in ACCEPTED.items():
            acknowledge(pool, rule, reason)
        for name in groups:
            # Names may have characters that ids lack.
            digest = hashlib.sha256(name.encode()).hexdigest()[:16]
            cognito.UserPoolGroup(self, f"Group{digest}", group_name=name, user_pool=pool)
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
                callback_urls=[*callback_urls],
                flows=cognito.OAuthFlows(authorization_code_grant=True),
                scopes=[cognito.OAuthScope.OPENID, cognito.OAuthScope.EMAIL, cognito.OAuthScope.PROFILE],
            ),
            prevent_user_existence_errors=True,
            refresh_token_validity=Duration.days(7),
            supported_identity_providers=[cognito.UserPoolClientIdentityProvider.COGNITO],
        )
        self._callback_urls = callback_urls
        self.issuer = Issuer(pool.user_pool_provider_url, client.user_pool_client_id, domain.base_url())

    def add_callback(self, url: str) -> None:
        """Allow the sign-in and sign-out pages to redirect to a URL.

        It is known after the functions, which know the client.
        """
        resource = self._client.node.default_child
        assert isinstance(resource, cognito.CfnUserPoolClient), "a client's default child is its resource"
        resource.callback_ur_ls = [*self._callback_urls, url]
        resource.logout_ur_ls = [url]
