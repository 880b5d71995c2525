/**
 * The table of all settings: name, type, default, unit and meaning. `.env.example` and docs/reference/config.md are generated from it. Only
 * this file reads the environment.
 */
import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, isAbsolute, join } from 'node:path'
import { parseEnv } from 'node:util'
import { addressRangesOf } from './outbound/address-ranges.ts'
import { parseAllowed } from './outbound/url-guard.ts'
import { Secret } from './security/secret.ts'
import { cleanEmail, comparedEmail } from './values/email-address.ts'

/** The kind of a value. A setting of kind `url-or-off` becomes null when its value is empty or `off`, even when it has a default. */
type Kind = 'string' | 'int' | 'bool' | 'list' | 'secret' | 'url' | 'url-or-off'
interface Setting {
  readonly kind: Kind
  readonly default: string | null
  readonly doc: string
  readonly group: string
  readonly min?: number
}

const s = <const K extends Kind, const D extends string | null>(
  group: string,
  kind: K,
  defaultValue: D,
  doc: string,
  min?: number,
): Setting & { readonly kind: K; readonly default: D } => ({ group, kind, default: defaultValue, doc, ...(min === undefined ? {} : { min }) })

// biome-ignore format: a table reads by rows
export const settings = {
  HOST: s('server', 'string', '127.0.0.1', 'Address to listen on.'),
  PORT: s('server', 'int', '8787', 'Port to listen on; 0 takes a free one.', 0),
  WORKERS: s('server', 'string', '1', 'Processes that serve behind one port, on PostgreSQL; auto: one for each core. See docs/operate/several-processes.md.'),
  BASE_URL: s('server', 'url', null, 'Public base URL, without a path. Default: http://HOST:PORT.'),
  CONSOLE: s('server', 'bool', 'on', 'The web console at /console. off: the API, MCP and the pages for sign-in stay.'),
  ALLOWED_HOSTS: s('server', 'list', '', 'Extra Host names that /mcp accepts beside the one of BASE_URL and loopback.'),
  LOG_LEVEL: s('server', 'string', 'info', 'fatal, error, warn, info, debug or silent.'),
  ENV_FILE: s('server', 'string', null, 'The .env file whose names Brigade checks for slips. `npm start` and `npm run` commands set it to the file that they read.'),
  DATABASE_URL: s('data', 'secret', null, 'PostgreSQL 14 or newer. Absent: the embedded database in DATA_DIR.'),
  DB_POOL_MAX: s('data', 'int', '10', 'Connections of this process to PostgreSQL.', 3),
  DATA_DIR: s('data', 'string', './.brigade', 'Embedded database, usage journal, folder store. Must survive a restart.'),
  MASTER_KEY: s('data', 'secret', null, '32 bytes as base64 or hex; seals stored credentials. Made in DATA_DIR on the first start of the embedded default, required with DATABASE_URL.'),
  FOLDER_STORE: s('data', 'bool', null, 'Allow {"store":"folder"} as memory store. Default: on with the embedded database, off otherwise.'),
  SETTLE: s('data', 'string', 'journal', 'journal: a reply ends when its usage is in the local journal. postgres: when it is committed.'),
  CONFIG_FILE: s('providers', 'string', 'brigade.config.json', 'Operator file that adds or overrides providers, models and prices.'),
  SANDBOX: s('providers', 'bool', null, 'The simulated provider. Default: on while no provider key that is set serves a model.'),
  LOCAL_SERVERS: s('providers', 'bool', 'on', 'Look for an OpenAI-compatible server on its usual loopback ports at start.'),
  TRUSTED_PROXIES: s('security', 'list', '', 'Addresses or CIDR ranges of the proxies in front whose X-Forwarded-For Brigade trusts; empty: none.'),
  ANON_RPM: s('security', 'int', '120', 'Requests a minute without a credential to /v1 and /mcp, and sign-ins begun, per browser or address.', 1),
  CONSOLE_RPM: s('security', 'int', '600', 'Requests a minute of one signed-in person to /me, counted by each process.', 1),
  CONSOLE_ORIGINS: s('security', 'list', '', 'Origins beside BASE_URL whose pages may call /me and /auth with the session cookie.'),
  CORS_ORIGINS: s('security', 'list', '', 'Origins whose pages may call /v1 from a browser, with a key in a header and never with cookies; * for all. Empty: none.'),
  OPERATOR_EMAILS: s('security', 'list', '', 'Addresses of the people who may use the pages and endpoints of the operator (/me/operator), after a sign-in that proves the address. Empty: nobody.'),
  SESSION_TTL_S: s('sign-in', 'int', '2592000', 'Life of a sign-in.', 1),
  SIGN_IN_LINK_TTL_S: s('sign-in', 'int', '900', 'Life of a one-time sign-in link.', 1),
  GOOGLE_CLIENT_ID: s('sign-in', 'string', null, 'Sign-in with Google: client id. Absent: not offered.'),
  GOOGLE_CLIENT_SECRET: s('sign-in', 'secret', null, 'Sign-in with Google: client secret.'),
  GOOGLE_ISSUER: s('sign-in', 'url', 'https://accounts.google.com', 'OpenID Connect issuer of the provider google.'),
  GITHUB_CLIENT_ID: s('sign-in', 'string', null, 'Sign-in with GitHub: client id. Absent: not offered.'),
  GITHUB_CLIENT_SECRET: s('sign-in', 'secret', null, 'Sign-in with GitHub: client secret.'),
  GITHUB_BASE_URL: s('sign-in', 'url', 'https://github.com', 'Where /login/oauth is.'),
  GITHUB_API_URL: s('sign-in', 'url', 'https://api.github.com', 'Where /user and /user/emails are.'),
  SIGN_IN_FILE: s('sign-in', 'string', null, 'JSON file with OpenID Connect issuers, and the mail domains that organisations own (docs/guides/sign-in.md). Absent: none.'),
  SMTP_URL: s('mail', 'secret', null, 'smtp:// or smtps:// URL of the mail server. Absent: mail waits in the outbox.'),
  MAIL_FROM: s('mail', 'string', 'Brigade <no-reply@localhost>', 'Sender of mail.'),
  MAIL_POLL_MS: s('mail', 'int', '5000', 'How often Brigade looks for due mail.', 10),
  WEBHOOK_POLL_MS: s('webhooks', 'int', '1000', 'How often Brigade looks for due deliveries.', 10),
  WEBHOOK_TIMEOUT_MS: s('webhooks', 'int', '15000', 'How long a receiver may take to answer, from connecting to the end of its reply.', 10),
  WEBHOOK_RETRY_S: s('webhooks', 'list', '5,300,1800,7200,18000,36000,50400,72000,86400', 'Waits in seconds after each failed attempt of a delivery; after the last one it is dead.'),
  WEBHOOK_DISABLE_FAILURES: s('webhooks', 'int', '20', 'Failed attempts in a row after which an endpoint is disabled.', 1),
  WEBHOOK_CONCURRENCY: s('webhooks', 'int', '4', 'Concurrent deliveries to one endpoint, over all processes.', 1),
  WEBHOOK_ENDPOINTS_MAX: s('webhooks', 'int', '20', 'Webhook endpoints of an organisation.', 1),
  WEBHOOK_KEEP_DAYS: s('webhooks', 'int', '30', 'Days for which events and settled deliveries are kept.', 1),
  BATCH_POLL_MS: s('routing', 'int', '60000', 'First wait before Brigade asks a provider about a batch. The waits grow to ten times this one.', 10),
  BATCH_LINES_MAX: s('routing', 'int', '50000', 'Requests of one batch.', 1),
  BATCH_FILE_MAX_BYTES: s('routing', 'int', String(200 * 1024 * 1024), 'One batch, with all of its requests.', 1),
  BYOK: s('providers', 'bool', 'on', 'Organisations may save keys of their own at providers.'),
  GOOGLE_TOKEN_URL: s('providers', 'url', 'https://oauth2.googleapis.com/token', 'Where service accounts of Google get access tokens. No file of an organisation changes it.'),
  ENTRA_LOGIN_URL: s('providers', 'url', 'https://login.microsoftonline.com', 'Where applications of Microsoft Entra get access tokens. Other clouds of Microsoft have their own.'),
  CUSTOM_ENDPOINTS: s('providers', 'bool', 'on', 'Organisations may register OpenAI-compatible servers of their own.'),
  TOOL_GATEWAY: s('tools', 'bool', 'on', 'Organisations may register MCP servers of their own, and their agents may call the approved tools of these servers.'),
  TOOL_TIMEOUT_MS: s('tools', 'int', '60000', 'How long a call of a tool may take, when its server has no time of its own.', 1),
  TOOL_RESULT_MAX_BYTES: s('tools', 'int', String(1024 * 1024), 'Result of a call of a tool.', 1024),
  TOOL_SERVERS_PER_ORG: s('tools', 'int', '50', 'MCP servers of an organisation.', 1),
  TOOLS_PER_SERVER: s('tools', 'int', '1000', 'Tools of one MCP server; Brigade reads no list that is longer.', 1),
  TOOL_SYNC_MINUTES: s('tools', 'int', '60', 'How often Brigade reads the tools of each MCP server again.', 1),
  RAZORPAY_KEY_ID: s('billing', 'string', null, 'Payments: key id. With the secret it switches billing on: keys are trial keys until the organisation has credit.'),
  RAZORPAY_KEY_SECRET: s('billing', 'secret', null, 'Payments: key secret.'),
  RAZORPAY_BASE_URL: s('billing', 'url', 'https://api.razorpay.com', 'Payments: where the HTTP API is.'),
  RAZORPAY_TIMEOUT_MS: s('billing', 'int', '15000', 'Payments: longest wait for an answer of the HTTP API.', 1),
  RAZORPAY_WEBHOOK_SECRET: s('billing', 'secret', null, 'Payments: secret of the webhook that the payment provider calls. Absent: such calls are refused, and only the browser confirms payments.'),
  PAYMENT_PROVIDER: s('billing', 'string', 'razorpay', 'Id of the payment provider in POST /webhooks/<id> and in its signature header x-<id>-signature.'),
  INVOICE_SELLER_NAME: s('billing', 'string', 'Brigade', 'The name of the seller on invoices and receipts.'),
  INVOICE_SELLER_ADDRESS: s('billing', 'string', '', 'Address of the seller on invoices; commas become lines.'),
  INVOICE_SELLER_GSTIN: s('billing', 'string', null, 'GSTIN of the seller. Its first two digits are the state that decides between CGST with SGST and IGST.'),
  INVOICE_PREFIX: s('billing', 'string', 'BR', 'First part of invoice numbers: one to three capital letters or digits.'),
  INVOICE_SAC: s('billing', 'string', '998315', 'Service accounting code on invoices, six digits that begin with 99. Default: hosting and provisioning of information technology.'),
  GST_BUSINESS_INVOICES: s('billing', 'bool', 'off', 'Organisations may give their GSTIN and get it on their invoices. Switch it on when you know what e-invoicing requires of your business.'),
  TRIAL_RPM: s('billing', 'int', '300', 'Requests a minute of a trial key, and the most it can be given.', 1),
  TRIAL_DAILY: s('billing', 'int', '2000', 'Requests a day of a trial key, and the most it can be given.', 1),
  TRIAL_ORG_DAILY: s('billing', 'int', '0', 'Free requests a day of all trial keys together, in all organisations that one person made. 0: as TRIAL_DAILY.', 0),
  KEY_NOTICE_DAYS: s('limits', 'int', '14', 'Days between the notice and the disabling of an unused key.', 0),
  TEAM_ORGS_MAX: s('limits', 'int', '10', 'Team organisations that one person may make.', 1),
  MEMBERS_MAX: s('limits', 'int', '500', 'Members and open invitations of an organisation.', 1),
  AUDIT_KEEP_DAYS: s('security', 'int', '400', 'Days for which the audit trail is kept.', 1),
  OUTBOUND_ALLOW: s('security', 'list', '', 'host:port pairs that user-given URLs may reach although they are private or plain http.'),
  DEFAULT_RPM: s('limits', 'int', '600', 'Requests a minute of a new key.', 1),
  ORG_RPM: s('limits', 'int', '6000', 'Requests a minute of an organisation, over all its keys. The oldest organisation has no limit of its own; brigade admin limits sets others. 0: none.', 0),
  ORG_RUNNING: s('limits', 'int', '500', 'Calls of an organisation that run concurrently; a stream counts until it ends. Not for the oldest organisation. 0: none.', 0),
  ORG_KEYS: s('limits', 'int', '1000', 'Keys of an organisation that can be used. Not for the oldest organisation. 0: none.', 0),
  ORG_AGENTS: s('limits', 'int', '1000', 'Active agents of an organisation, children included. Not for the oldest organisation. 0: none.', 0),
  ORG_STREAMS: s('limits', 'int', '100', 'Streams of changes (MCP) that an organisation has open. Not for the oldest organisation. 0: none.', 0),
  RATELIMIT_FIELDS: s('limits', 'bool', 'on', 'Replies to model calls carry RateLimit-Policy and RateLimit, beside the headers of OpenAI or Anthropic.'),
  CIRCUIT_FAILURES: s('routing', 'int', '5', 'Consecutive failures that open a route circuit.', 1),
  CIRCUIT_OPEN_MS: s('routing', 'int', '30000', 'How long an open circuit waits before one probe.', 1),
  CONNECT_TIMEOUT_MS: s('routing', 'int', '10000', 'Connecting to a provider.', 1),
  FIRST_BYTE_TIMEOUT_MS: s('routing', 'int', '120000', 'Waiting for the first byte of a provider.', 1),
  WHOLE_REPLY_TIMEOUT_MS: s('routing', 'int', '600000', 'Most that a reply without a stream is waited for: FIRST_BYTE_TIMEOUT_MS and a second for each 20 tokens of output that the call allows.', 1),
  STREAM_IDLE_TIMEOUT_MS: s('routing', 'int', '120000', 'Silence inside a provider stream.', 1),
  IMAGE_POLL_MS: s('routing', 'int', '1000', 'Pause between two polls of an image job of a provider.', 1),
  IMAGE_DEADLINE_MS: s('routing', 'int', '120000', 'When an attempt to draw images is given up.', 1),
  PANEL_JUDGE: s('routing', 'string', 'auto:vision', 'Chat model that picks the best image of the panel: a catalog id or a preset.'),
  PANEL_JUDGE_TIMEOUT_MS: s('routing', 'int', '20000', 'How long the judge of the image panel may take.', 1),
  KEEP_ALIVE_MS: s('server', 'int', '15000', 'Silence of a stream after which Brigade sends the client a comment to keep the connection open.', 10),
  BODY_LIMIT_BYTES: s('server', 'int', String(1024 * 1024), 'JSON body of a management call.', 1),
  INFERENCE_BODY_LIMIT_BYTES: s('server', 'int', String(32 * 1024 * 1024), 'JSON body of an inference call.', 1),
  FORM_FILE_LIMIT_BYTES: s('server', 'int', String(25 * 1024 * 1024), 'One file of a multipart form (images to edit, audio).', 1),
  FORM_LIMIT_BYTES: s('server', 'int', String(64 * 1024 * 1024), 'A whole multipart form.', 1),
  BODIES_MAX_BYTES: s('server', 'int', '0', 'Request bodies under way in this process, in bytes; beyond it 503. 0: a sixth of its heap, at least 128 MiB.', 0),
  BODIES_ORG_PERCENT: s('server', 'int', '25', "Share of them that one founder's organisations may have; at least one whole form fits.", 1),
  UPLOAD_LEAST_BYTES_PER_S: s('server', 'int', '65536', 'Lowest average speed of an upload after its first ten seconds; 0: none.', 0),
  CONNECTIONS_MAX: s('server', 'int', '10000', 'Client connections of this process. Beyond the limit, an idle connection of the holder with the most is closed. If there is none, the answer is 503.', 20),
  STREAMS_MAX: s('server', 'int', '10000', 'Streamed replies and MCP messages under way in this process; beyond it 503.', 20),
  CHANGE_STREAMS_MAX: s('server', 'int', '1000', 'Streams of changes (MCP) of this process. In a full process, a new stream takes a place from the founder of organisations with the most.', 2),
  HINT_STREAMS_MAX: s('server', 'int', '2000', 'Streams of hints (GET /me/events) of this process, one for each open console; beyond it 503, and the console polls.', 2),
  POLLS_MAX: s('server', 'int', '2000', 'MCP resources, such as usage and budgets, that this process reads regularly because a client subscribed to their changes; beyond it a subscription is refused.', 20),
  ORG_SHARE_PERCENT: s('server', 'int', '50', "Share that one founder's organisations, or one address without a credential, may use of what others leave free. It applies to connections, streamed replies, streams of hints, polls, kept replies and unread replies.", 1),
  REPLIES_MAX_BYTES: s('server', 'int', '0', 'Bytes that this process keeps of replies of providers, servers of organisations and memory stores: whole replies while it reads them, and incomplete events of streams. Beyond it whole replies wait, and streams end with 503. 0: a sixth of its heap, at least 128 MiB.', 0),
  UNREAD_MAX_BYTES: s('server', 'int', '0', 'Replies that wait in this process for clients that read slowly, in bytes; beyond it the oldest is cut. 0: an eighth of its heap, at least 64 MiB.', 0),
  READ_LEAST_BYTES_PER_S: s('server', 'int', '16384', 'Lowest speed at which a client must read a waiting reply, after thirty seconds. 0: no limit.', 0),
  MCP_OAUTH_ISSUER: s('agents', 'string', null, 'URL of the issuer at which clients of MCP may sign in, for /orgs/<id>/mcp, exactly as in its tokens. They act as the agents that trust rules name. Absent: no OAuth.'),
  AGENT_TOKEN_TTL_S: s('agents', 'int', '900', 'Life of an agent token.', 1),
  PLAYGROUND_BUDGET_INR: s('agents', 'int', '50', 'Monthly budget in rupees that the playground agent of a person begins with; 0: none.', 0),
  SIGNING_KEY_ROTATE_DAYS: s('agents', 'int', '30', 'Days after which another key signs agent tokens; the one before verifies until its last token has expired. 0: never automatically.', 0),
  AGENT_STALE_MS: s('agents', 'int', '30000', 'After this time without a control-log sync, agent tokens get 503 and their streams are cut.', 1),
  CONTROL_POLL_MS: s('agents', 'int', '1000', 'Poll of the control log in addition to LISTEN.', 10),
  CACHE_TTL_MS: s('limits', 'int', '30000', 'Life of cached keys, agents and chains.', 1),
  ALLOWANCE_SECONDS: s('limits', 'int', '10', 'Seconds of demand that a process leases in advance; 0 queries the database for every call.', 0),
  RECALL_WAIT_MS: s('limits', 'int', '150', 'Wait for idle slices of other processes before a refusal. Keep it well below the 500 ms that a stream waits for an extension.', 0),
  BEAT_MS: s('limits', 'int', '1000', 'Heartbeat of a process.', 10),
  JANITOR_MS: s('limits', 'int', '5000', 'How often a process looks for dead processes.', 10),
  OFFLINE_MAX_MS: s('limits', 'int', '120000', 'How long calls are served while the database is away.', 1),
  JOURNAL_FLUSH_MS: s('limits', 'int', '100', 'Longest wait of a usage record before it goes to the database.', 1),
  JOURNAL_MAX_BYTES: s('limits', 'int', String(256 * 1024 * 1024), 'Unflushed journal at which new calls get 503.', 1024),
  JOURNAL_KEEP_MS: s('limits', 'int', '3600000', 'How long flushed journal segments are kept.', 0),
  JOURNAL_FSYNC_MS: s('limits', 'int', '0', 'How often the journal is synced to the disk, against power cuts; 0: the system decides.', 0),
  DRAIN_MS: s('server', 'int', '30000', 'How long SIGTERM waits for running calls.', 0),
  MEMORY_OBJECT_MAX_BYTES: s('memory', 'int', String(10 * 1024 * 1024), 'Largest memory object over HTTP.', 1),
  MEMORY_MCP_MAX_BYTES: s('memory', 'int', String(256 * 1024), 'Largest memory object over MCP.', 1),
  MEMORY_INTENT_MS: s('memory', 'int', '60000', 'Life of a reserved memory write whose process died.', 1),
  MEMORY_QUOTA_MAX_MB: s('memory', 'int', '10240', 'Largest quota_mb of a store that the operator pays for: a folder, or a bucket of MEMORY_ROLE_BUCKETS. 0: none.', 0),
  MEMORY_ROLE_BUCKETS: s('memory', 'list', '', 'Buckets that the AWS identity of the gateway may sign for, as organisation:bucket@region; * for every organisation. Empty: none.'),
  MEMORY_ROLE_ENDPOINT: s('memory', 'url', null, 'S3 endpoint of MEMORY_ROLE_BUCKETS. Absent: AWS.'),
  MEMORY_STS_REGION: s('memory', 'string', 'us-east-1', 'Region whose STS the gateway asks for the roles of organisations. AWS_ENDPOINT_URL_STS names another endpoint.'),
  STORE_TIMEOUT_MS: s('memory', 'int', '30000', 'One call to a memory store.', 1),
  COLLECTIONS_MAX: s('limits', 'int', '100', 'Collections of an organisation.', 1),
  MONITOR_EVERY_S: s('monitoring', 'int', '300', 'Pause between two rounds of canaries of a monitored collection.', 1),
  MONITOR_TIMEOUT_S: s('monitoring', 'int', '30', 'When a canary is given up and counts as failed.', 1),
  MONITORED_MAX: s('monitoring', 'int', '20', 'Monitored collections of an organisation.', 0),
  CANARIES_ORG_MAX: s('monitoring', 'int', '60000', "Canaries of one founder's organisations in a day (UTC), by monitoring and by hand: the platform pays those on its keys.", 0),
  CANARIES_MAX: s('monitoring', 'int', '600000', 'The same for all organisations together.', 0),
  ALERTS_MAX: s('monitoring', 'int', '20', 'Alerts of a collection.', 1),
  ALERT_COOLDOWN_S: s('monitoring', 'int', '3600', 'Least time between two notices of one alert.', 0),
  ALERT_WINDOW_S: s('monitoring', 'int', '1800', 'Time span of canaries that an alert checks; at least three rounds, for any value.', 1),
  USAGE_KEEP_DAYS: s('data', 'int', '400', 'Days for which single usage events are kept. Sums by day stay.', 32),
  PUBLIC_STATS: s('catalog', 'bool', 'on', 'GET /v1/rankings and the stats of models are for everybody. off: only for callers with a credential, because sums over few organisations reveal much about each.'),
  PRICE_FEED_URL: s('catalog', 'url-or-off', 'https://openrouter.ai/api/v1/models', 'Public price list that GET /v1/pricing/compare compares with. Empty or off: no comparison.'),
  FX_URL: s('catalog', 'url-or-off', 'https://open.er-api.com/v6/latest/USD', 'Exchange rates of one US dollar, for that comparison. Empty or off: no comparison.'),
  FX_RATES: s('catalog', 'list', '', 'Prices of foreign currencies in rupees with their days, such as USD=88.25@2026-11-28,EUR=102.4@2026-11-28. Organisations choose one of them as display currency. Empty: reports show rupees only.'),
  PRICE_FEED_EVERY_S: s('catalog', 'int', '3600', 'Least age of the price list and the rate before they are fetched again.', 1),
  METRICS: s('operations', 'bool', 'on', 'GET /metrics.'),
  METRICS_TOKEN: s('operations', 'secret', null, 'Bearer token that GET /metrics asks for. Absent: it answers callers from this machine only.'),
  OTEL_EXPORTER_OTLP_ENDPOINT: s('operations', 'url', null, 'OpenTelemetry collector (OTLP over HTTP) for traces and metrics. Absent: none are made.'),
  OTEL_EXPORTER_OTLP_HEADERS: s('operations', 'secret', null, 'Headers for that collector: name=value, separated by commas.'),
  OTEL_SERVICE_NAME: s('operations', 'string', 'brigade', 'Name of this service in traces and metrics.'),
  OTEL_TRACES_SAMPLE_PERCENT: s('operations', 'int', '100', 'Share of calls that are traced, if the caller has not decided with traceparent.', 0),
  ATTESTATION_EVIDENCE_MAX: s('compliance', 'int', '1000', 'Most calls that a residency attestation lists one by one.', 1),
  MASTER_KEY_OTHER: s('data', 'secret', null, 'A second master key whose values can be opened too, while the key is changed (docs/operate/keys-and-secrets.md).'),
  SERVICE_ID: s('server', 'string', 'brigade', 'Prefix of panel model ids and name of the MCP server.'),
} as const satisfies Record<string, Setting>

type Settings = typeof settings
type Value<K extends Kind, D> = K extends 'int'
  ? number
  : K extends 'list'
    ? readonly string[]
    : K extends 'bool'
      ? D extends string
        ? boolean
        : boolean | null
      : K extends 'secret'
        ? Secret | null
        : K extends 'url-or-off'
          ? string | null
          : D extends string
            ? string
            : string | null

/** The values of the settings, and functions that read variables of providers. */
export type Config = { readonly [N in keyof Settings]: Value<Settings[N]['kind'], Settings[N]['default']> } & {
  /**
   * Returns `<PROVIDER>_API_KEY` and `<PROVIDER>_BASE_URL`. `<PROVIDER>` is the provider id in capitals, with `_` for every character that
   * is not a letter or digit.
   */
  readonly providerEnv: (providerId: string) => { apiKey: Secret | null; baseUrl: string | null }
  /** Returns `<PROVIDER>_<NAME>`, such as AZURE_RESOURCE. Null when it is not set. */
  readonly providerValue: (providerId: string, name: string) => string | null
  /** Returns the value of a variable that the operator's file names (`api_key_env`). Null when it is not set. */
  readonly namedSecret: (name: string) => Secret | null
}

/** Returns the start of the names of the variables of a provider: OPENAI for openai, MY_SERVER for my-server. */
const providerPrefix = (providerId: string): string => providerId.toUpperCase().replace(/[^A-Z0-9]/g, '_')

/** Returns the variable with the platform's key of a provider. */
export const keyVariableOf = (providerId: string): string => `${providerPrefix(providerId)}_API_KEY`

/** Returns another variable of a provider: `AZURE_RESOURCE` for azure and `resource`. */
export const providerVariableOf = (providerId: string, name: string): string => `${providerPrefix(providerId)}_${name.toUpperCase()}`

/** Returns the variables of a provider: its key and its base URL. */
export const variablesOfProvider = (providerId: string): readonly string[] => [keyVariableOf(providerId), `${providerPrefix(providerId)}_BASE_URL`]

/** A configuration that cannot work. The message names the setting and says which values it accepts. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError'
}

/** Maximum number of addresses in OPERATOR_EMAILS. */
const operatorsMax = 100
/** The largest budget in rupees that a setting may have, as in requests. */
const budgetInrMax = 1_000_000_000

function read(name: string, setting: Setting, raw: string | undefined): unknown {
  if (setting.kind === 'url-or-off' && raw !== undefined && /^\s*(off)?\s*$/i.test(raw)) return null
  const text = raw === undefined || raw === '' ? setting.default : raw
  switch (setting.kind) {
    case 'int': {
      const n = Number(text)
      if (!Number.isSafeInteger(n) || n < (setting.min ?? 0))
        throw new ConfigError(`${name} must be a whole number of at least ${setting.min ?? 0}, not "${text}".`)
      return n
    }
    case 'bool': {
      if (text === null) return null
      if (['on', 'true', '1', 'yes'].includes(text)) return true
      if (['off', 'false', '0', 'no'].includes(text)) return false
      throw new ConfigError(`${name} must be on or off, not "${text}".`)
    }
    case 'list':
      return (text ?? '')
        .split(',')
        .map(item => item.trim())
        .filter(item => item !== '')
    case 'secret':
      return text === null ? null : new Secret(text)
    case 'url': {
      if (text === null) return null
      if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol)) throw new ConfigError(`${name} must be an http or https URL, not "${text}".`)
      return text.replace(/\/+$/, '')
    }
    case 'url-or-off': {
      if (text === null) return null
      if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
        throw new ConfigError(`${name} must be an http or https URL, or off, not "${text}".`)
      return text
    }
    case 'string':
      return text
    default: {
      const never: never = setting.kind
      throw new Error(`unknown kind ${never}`)
    }
  }
}

/** Returns whether payments are configured. Balances are then prepaid, new keys are trial keys, and calls need credit. */
export function isBilling({ RAZORPAY_KEY_ID, RAZORPAY_KEY_SECRET }: Pick<Config, 'RAZORPAY_KEY_ID' | 'RAZORPAY_KEY_SECRET'>): boolean {
  return RAZORPAY_KEY_ID !== null && RAZORPAY_KEY_SECRET !== null
}

/**
 * Reads the environment (or `env` in tests) into typed settings. For a secret, `NAME_FILE` may name a file with the value. Throws
 * ConfigError.
 */
export function loadConfig(env: Readonly<Record<string, string | undefined>> = process.env): Config {
  const values: Record<string, unknown> = {}
  for (const [name, setting] of Object.entries(settings)) values[name] = read(name, setting, textOf(env, name, setting))
  const notAllowed = (values['OUTBOUND_ALLOW'] as readonly string[]).find(entry => parseAllowed(entry) === null)
  if (notAllowed !== undefined) throw new ConfigError(`OUTBOUND_ALLOW must list host:port pairs such as models.internal:8000, not "${notAllowed}".`)
  const { wrong } = addressRangesOf(values['TRUSTED_PROXIES'] as readonly string[])
  if (wrong !== null) throw new ConfigError(`TRUSTED_PROXIES must list IP addresses or CIDR ranges such as 10.0.0.0/8, not "${wrong}".`)
  for (const name of ['CORS_ORIGINS', 'CONSOLE_ORIGINS'] as const) checkOrigins(name, values[name] as readonly string[])
  values['OPERATOR_EMAILS'] = operatorEmails(values['OPERATOR_EMAILS'] as readonly string[])
  if (Number(values['PLAYGROUND_BUDGET_INR']) > budgetInrMax) throw new ConfigError(`PLAYGROUND_BUDGET_INR must be at most ${budgetInrMax}. 0 sets no budget.`)
  if (values['SETTLE'] !== 'journal' && values['SETTLE'] !== 'postgres') throw new ConfigError('SETTLE must be journal or postgres.')
  return {
    ...(values as unknown as Config),
    namedSecret: name => (env[name] ? new Secret(env[name]) : null),
    providerValue: (providerId, name) => env[providerVariableOf(providerId, name)] || null,
    providerEnv(providerId) {
      const prefix = providerPrefix(providerId)
      const key = env[`${prefix}_API_KEY`]
      const baseUrl = env[`${prefix}_BASE_URL`]
      if (baseUrl !== undefined && baseUrl !== '' && !URL.canParse(baseUrl)) throw new ConfigError(`${prefix}_BASE_URL must be a URL.`)
      return { apiKey: key ? new Secret(key) : null, baseUrl: baseUrl ? baseUrl.replace(/\/+$/, '') : null }
    },
  }
}

/** Returns the addresses of operators as they are compared, each once. Throws ConfigError for a text that is not one address, and for too many. */
function operatorEmails(emails: readonly string[]): readonly string[] {
  if (emails.length > operatorsMax) throw new ConfigError(`OPERATOR_EMAILS must list at most ${operatorsMax} addresses, not ${emails.length}.`)
  const clean = emails.map(email => {
    const address = cleanEmail(email)
    if (address === null) throw new ConfigError(`OPERATOR_EMAILS must list e-mail addresses such as asha@example.com, separated by commas, not "${email}".`)
    return comparedEmail(address)
  })
  return [...new Set(clean)]
}

/**
 * Throws ConfigError for a text that is not an origin as browsers send it, without a path. A wrong spelling would never match, because origins are compared
 * exactly.
 */
function checkOrigins(name: string, origins: readonly string[]): void {
  for (const origin of origins) {
    if (origin === '*' && name === 'CORS_ORIGINS') continue
    const proper = URL.canParse(origin) ? new URL(origin).origin : 'null'
    if (proper === 'null') throw new ConfigError(`${name} must list origins such as https://app.example.com, not "${origin}".`)
    if (proper !== origin) throw new ConfigError(`${name} must list origins as browsers send them: ${proper}, not "${origin}".`)
  }
}

function textOf(env: Readonly<Record<string, string | undefined>>, name: string, setting: Setting): string | undefined {
  const file = env[`${name}_FILE`]
  if (setting.kind === 'secret' && file !== undefined && env[name] === undefined) return readFileSync(file, 'utf8').trim()
  return env[name]
}

/** Returns whether `TERM` says that the terminal only writes text, and cannot move its cursor. */
export function isDumbTerminal(env: Readonly<Record<string, string | undefined>> = process.env): boolean {
  return env['TERM'] === 'dumb'
}

/**
 * Gives the environment the settings of the installed package: those of `.env` in ~/.brigade, and that folder as DATA_DIR. A variable that is already there
 * has priority. `env` is changed. Throws the error of reading the file.
 */
export function useHomeFolder(env: Record<string, string | undefined> = process.env, home: string = homedir()): void {
  const folder = join(home, '.brigade')
  const settingsFile = join(folder, '.env')
  if (existsSync(settingsFile)) {
    for (const [name, value] of Object.entries(parseEnv(readFileSync(settingsFile, 'utf8')))) env[name] ??= value
    // The gateway warns of names in it that are no settings.
    env['ENV_FILE'] ??= settingsFile
  }
  env['DATA_DIR'] ??= folder
  const operatorFile = join(folder, settings.CONFIG_FILE.default)
  if (existsSync(operatorFile)) env['CONFIG_FILE'] ??= operatorFile
}

/** Returns whether the module at `url` is part of an installed package, and not of a checkout. */
export function isInstalledPackage(url: string): boolean {
  return url.includes('/node_modules/')
}

/** Returns the folder where client commands store this user's files: brigade/ in XDG_CONFIG_HOME, or in ~/.config. */
export function userConfigFolder(env: Readonly<Record<string, string | undefined>> = process.env): string {
  const given = env['XDG_CONFIG_HOME'] ?? ''
  return join(isAbsolute(given) ? given : join(homedir(), '.config'), 'brigade')
}

/**
 * Returns what client commands read from the environment. BRIGADE is the address of the gateway. BRIGADE_KEY is an API key or agent token,
 * or BRIGADE_KEY_FILE names a file that contains it. Values that are not set are null. Throws the error of reading the file.
 */
export function clientEnvironment(env: Readonly<Record<string, string | undefined>> = process.env): {
  readonly address: string | null
  readonly key: Secret | null
  /** Name of the variable from which `key` comes. */
  readonly keyVariable: string
} {
  const address = env['BRIGADE']?.trim() || null
  const key = env['BRIGADE_KEY']?.trim()
  if (key) return { address, key: new Secret(key), keyVariable: 'BRIGADE_KEY' }
  const file = env['BRIGADE_KEY_FILE']
  return { address, key: file ? new Secret(readFileSync(file, 'utf8').trim()) : null, keyVariable: 'BRIGADE_KEY_FILE' }
}

/** Environment variables that say where coding agents and editors keep their settings, if not in the default folder. */
const clientFolderVariables = ['CODEX_HOME', 'CLAUDE_CONFIG_DIR', 'XDG_CONFIG_HOME', 'APPDATA'] as const

/** Returns where this user's programs look for their settings: the home folder, and those of the variables above that are set. */
export function clientFolders(env: Readonly<Record<string, string | undefined>> = process.env): {
  readonly home: string
  readonly variables: Readonly<Record<string, string>>
} {
  return { home: homedir(), variables: Object.fromEntries(clientFolderVariables.flatMap(name => (env[name] ? [[name, env[name]]] : []))) }
}

/** Returns where the shell of this user looks for programs: the folders of PATH, and the endings that a program may have (PATHEXT of Windows). */
export function programPlaces(env: Readonly<Record<string, string | undefined>> = process.env): {
  readonly folders: readonly string[]
  readonly endings: readonly string[]
} {
  const parts = (text: string | undefined, separator: string): string[] => (text ?? '').split(separator).filter(part => part !== '')
  return { folders: parts(env['PATH'] ?? env['Path'], delimiter), endings: ['', ...parts(env['PATHEXT'], ';')] }
}
