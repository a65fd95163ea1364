"""Things of which one is used for one purpose: where a note had npm and now has pnpm, its value changed."""

from typing import Final

from recall.text.wording import form

# One kind a line.
_KINDS: Final = """
npm pnpm yarn bun
pip uv poetry pipenv conda pdm
black ruff yapf autopep8
flake8 pylint pyflakes
eslint biome oxlint
prettier dprint
mypy pyright pyre
pytest unittest nose
jest vitest mocha jasmine
cypress playwright selenium puppeteer
redis memcached valkey hazelcast
postgresql postgres mysql mariadb sqlite mongodb oracle cockroachdb dynamodb cassandra
kafka rabbitmq nats pulsar activemq
react vue angular svelte solid preact
flask django fastapi starlette tornado
express koa fastify nestjs hono
spring quarkus micronaut
webpack vite rollup esbuild parcel turbopack rspack
turborepo nx lerna bazel pants
maven gradle ant sbt
vim neovim emacs vscode sublime helix nano
bash zsh fish powershell
docker podman containerd
kubernetes nomad swarm mesos
terraform pulumi cloudformation opentofu ansible puppet chef
aws gcp azure aliyun digitalocean hetzner
s3 r2 gcs minio oss cos
jenkins circleci travis buildkite drone teamcity
github gitlab bitbucket gitea gerrit
jira linear trello asana youtrack clickup
slack discord teams mattermost feishu lark dingtalk
notion confluence obsidian
sentry datadog newrelic bugsnag rollbar
grafana metabase kibana superset tableau looker
prometheus influxdb graphite victoriametrics
stripe adyen paypal braintree alipay square
sendgrid mailgun postmark ses mailchimp
nginx apache caddy traefik haproxy envoy
elasticsearch opensearch solr meilisearch typesense
vault consul doppler
sass less stylus postcss
tailwind bootstrap bulma
jwt oauth saml ldap
rest graphql grpc soap trpc
json yaml toml xml ini protobuf msgpack
markdown asciidoc restructuredtext latex docx html
alembic flyway liquibase
sqlalchemy peewee tortoise
prisma typeorm sequelize drizzle knex
redux zustand mobx pinia vuex jotai
ubuntu debian fedora centos arch alpine
english chinese
camelcase snake_case kebab-case pascalcase
squash rebase
main master trunk
"""
_KIND_OF: Final = {
    form(word): number for number, line in enumerate(_KINDS.strip().split("\n")) for word in line.split()
}


def one_kind(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether all words of both, in the form of `text.wording`, are alternatives to each other."""
    kinds = {_KIND_OF.get(word, -1) for word in first | second}
    return bool(first and second) and len(kinds) == 1 and -1 not in kinds
