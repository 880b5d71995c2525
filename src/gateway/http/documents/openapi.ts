import { z } from 'zod'
import type { At, AuthKind, InputSpec } from '../../../platform/endpoint.ts'
import { type ErrorName, errorTable } from '../../../platform/errors.ts'
import { type Binding, countsStrangers } from '../edge.ts'
import { oauthErrorCode } from '../oauth-wire.ts'

/**
 * Returns the errors that every row with this kind of credential and path can return, in addition to the errors that the row names. An invalid agent label
 * is also a `bad_request`.
 */
function commonErrors({ auth, at, row }: Binding, hasInput: boolean): ErrorName[] {
  const names: ErrorName[] = ['internal_error']
  if (row.always !== true) names.push('places_taken')
  if (auth === 'key' || auth === 'key-or-session')
    names.push('invalid_api_key', 'key_disabled_inactive', 'rate_limit_exceeded', 'database_unavailable', 'bad_request', 'agent_paused')
  if (auth === 'session' || auth === 'key-or-session') {
    // An agent token may read these rows, so the errors of agent tokens apply here, too.
    names.push('no_session', 'invalid_api_key', 'rate_limit_exceeded', 'database_unavailable', 'forbidden', 'agent_paused')
    if (!at.startsWith('GET ')) names.push('foreign_origin')
  }
  if (auth === 'public' && countsStrangers(at)) names.push('rate_limit_exceeded', 'database_unavailable')
  if (hasInput) names.push('bad_request')
  return names
}

/** Returns every error that the row's operation can return. */
export function errorsOf(binding: Binding): ErrorName[] {
  const spec = binding.row.input
  const hasInput = spec.path !== undefined || spec.query !== undefined || spec.headers !== undefined || spec.body !== undefined || spec.bodyKind !== undefined
  const body: ErrorName[] = spec.body !== undefined || spec.bodyKind !== undefined ? ['payload_too_large', 'unsupported_media_type', 'bodies_refused'] : []
  const rule: ErrorName[] = Object.keys(binding.access).length > 0 ? ['forbidden'] : []
  return [...new Set<ErrorName>([...binding.row.errors, ...commonErrors(binding, hasInput), ...body, ...rule])]
}

type Json = Record<string, unknown>

function schemaOf(schema: z.ZodType, io: 'input' | 'output'): Json {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: 'any' })
  return rest
}

/** Returns the path of a row as OpenAPI writes it: `{id+}` becomes `{id}`. */
function openApiPath(at: At): string {
  return (at.split(' ')[1] ?? '').replace(/\{(\w+)\+\}/g, '{$1}')
}

/** Headers that browsers and HTTP clients send by themselves, and the header with the credential. They are not parameters of an operation. */
const transportHeaders = ['accept', 'authorization', 'cookie', 'host', 'origin', 'sec-fetch-site']

function parameters(schema: z.ZodType | undefined, where: 'path' | 'query' | 'header'): Json[] {
  if (!schema) return []
  const object = schemaOf(schema, 'input')
  const properties = (object['properties'] ?? {}) as Record<string, Json>
  const required = new Set((object['required'] ?? []) as string[])
  return Object.entries(properties)
    .filter(([name]) => where !== 'header' || !transportHeaders.includes(name))
    .map(([name, property]) => ({ name, in: where, required: where === 'path' || required.has(name), schema: property }))
}

function responses(binding: Binding): Json {
  const { row } = binding
  const whole = 'media' in row.output ? { [row.output.media]: {} } : { 'application/json': { schema: schemaOf(row.output, 'output') } }
  const content = canStream(row.input) ? { ...whole, 'text/event-stream': { schema: { type: 'string', description: 'Server-sent events.' } } } : whole
  const byStatus = new Map<number, string[]>()
  for (const name of errorsOf(binding)) {
    const { status, code } = errorTable[name]
    byStatus.set(status, [...new Set([...(byStatus.get(status) ?? []), row.clients === 'oauth' ? oauthErrorCode(name) : code])])
  }
  const shape = row.clients === 'oauth' ? 'OAuthError' : row.clients === 'gemini' ? 'GoogleError' : 'Error'
  const result: Json = { [String(row.status ?? 200)]: { description: 'Success', content } }
  for (const [status, codes] of [...byStatus].sort(([a], [b]) => a - b))
    result[String(status)] = {
      description: `Codes: ${codes.join(', ')}`,
      content: { 'application/json': { schema: { $ref: `#/components/schemas/${shape}` } } },
    }
  return result
}

const streaming = ['stream', 'stream_format']

/** Returns true when a field of the body, or `alt` in the query, can request server-sent events. */
function canStream({ body, query }: InputSpec): boolean {
  if (query instanceof z.ZodObject && 'alt' in query.shape) return true
  return body instanceof z.ZodObject && streaming.some(name => name in body.shape)
}

/** Returns the schema of the body: JSON, any text, or a form of one of the gateway's own pages (raw, with a schema). */
function requestBody({ body, bodyKind }: InputSpec): Json | undefined {
  if (body !== undefined) {
    const isForm = bodyKind === 'multipart' || (bodyKind === 'stream' && body instanceof z.ZodObject && 'file' in body.shape)
    const media = bodyKind === 'raw' || bodyKind === 'form' ? 'application/x-www-form-urlencoded' : isForm ? 'multipart/form-data' : 'application/json'
    const { examples, ...schema } = schemaOf(body, 'input')
    const [example] = Array.isArray(examples) ? examples : []
    return { required: true, content: { [media]: { schema, ...(example === undefined ? {} : { example }) } } }
  }
  return bodyKind === 'raw' ? { required: true, content: { 'text/plain': { schema: { type: 'string' } } } } : undefined
}

const keySchemes: Record<'all' | NonNullable<Binding['row']['clients']>, Json[]> = {
  all: [{ bearer: [] }],
  anthropic: [{ bearer: [] }, { messagesKey: [] }, { anthropicKey: [] }],
  responses: [{ bearer: [] }],
  gemini: [{ bearer: [] }, { googleKey: [] }, { googleQueryKey: [] }],
  oauth: [{ bearer: [] }, { basic: [] }],
}

function operation(binding: Binding): Json {
  const { row } = binding
  const spec = row.input
  const body = requestBody(spec)
  const security: Record<AuthKind, Json[]> = {
    key: keySchemes[row.clients ?? 'all'],
    // An agent token may read what a plain member may read.
    session: binding.at.startsWith('GET ') ? [{ session: [] }, { bearer: [] }] : [{ session: [] }],
    'key-or-session': [{ bearer: [] }, { session: [] }],
    public: [],
    signature: [],
  }
  return {
    operationId: binding.name,
    tags: [row.tag],
    summary: row.summary,
    security: security[binding.auth],
    parameters: [...parameters(spec.path, 'path'), ...parameters(spec.query, 'query'), ...parameters(spec.headers, 'header')],
    ...(body === undefined ? {} : { requestBody: body }),
    responses: responses(binding),
  }
}

/** Returns the place of the MCP server. `POST /mcp` uses JSON-RPC and is not an operation of this document. The MCP server lists its own tools. */
function mcpServer(baseUrl: string): Json {
  return {
    url: `${baseUrl}/mcp`,
    transport: 'streamable-http',
    serverCard: `${baseUrl}/mcp/server-card`,
    authentication: { scheme: 'bearer', description: 'The credential of the other operations; there is no OAuth login at this URL.' },
  }
}

/**
 * Returns the OpenAPI 3.1 document of the endpoint table and of the events that the gateway sends to webhooks. `webhooks` contains path items by name. zod
 * writes JSON Schema 2020-12, which is the dialect of OpenAPI 3.1.
 */
export function openApiOf(bindings: readonly Binding[], webhooks: Json, baseUrl: string, version: string): Json {
  const paths: Record<string, Json> = {}
  for (const binding of bindings) {
    const path = openApiPath(binding.at)
    const method = (binding.at.split(' ')[0] ?? '').toLowerCase()
    paths[path] = { ...paths[path], [method]: operation(binding) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Brigade',
      version,
      description:
        'A model gateway for people who run agents: models in the formats of OpenAI (chat, responses, embeddings, images, audio), Anthropic (messages) and Google (generateContent), agent identities, budgets, shared memory, MCP. The examples work without a provider key.',
    },
    servers: [{ url: baseUrl, description: 'The base URL that the operator has set.' }],
    externalDocs: { url: `${baseUrl}/llms.txt`, description: 'The same in plain text, with the lines that connect Claude Code, Codex and others.' },
    paths,
    webhooks,
    'x-mcp': mcpServer(baseUrl),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'API key (br-…) or agent token' },
        basic: { type: 'http', scheme: 'basic', description: 'API key as the password; the user name is not looked at' },
        messagesKey: { type: 'apiKey', in: 'header', name: 'x-br-api-key', description: 'API key or agent token, beside a credential for the provider' },
        googleKey: { type: 'apiKey', in: 'header', name: 'x-goog-api-key', description: 'API key or agent token, as clients of Google send it' },
        googleQueryKey: { type: 'apiKey', in: 'query', name: 'key', description: 'API key, as older clients of Google send it. Headers are safer.' },
        anthropicKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'API key, as clients of Anthropic send it' },
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'br_session',
          description: 'Set by signing in at /auth. A GET below /me that takes it takes agent tokens too, which see what a plain member sees.',
        },
      },
      schemas: {
        OAuthError: {
          type: 'object',
          required: ['error', 'error_description'],
          properties: { error: { type: 'string' }, error_description: { type: 'string' } },
        },
        GoogleError: {
          type: 'object',
          required: ['error'],
          properties: {
            error: {
              type: 'object',
              required: ['code', 'message', 'status'],
              properties: {
                code: { type: 'integer' },
                message: { type: 'string' },
                status: { type: 'string' },
                details: { type: 'array', items: { type: 'object' }, description: 'The code of the gateway is the reason of ErrorInfo.' },
              },
            },
          },
        },
        Error: {
          type: 'object',
          required: ['error'],
          properties: {
            error: {
              type: 'object',
              required: ['message', 'type', 'code'],
              properties: { message: { type: 'string' }, type: { type: 'string' }, code: { type: 'string' } },
            },
          },
        },
      },
    },
  }
}
