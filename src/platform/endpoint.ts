/**
 * The type of an endpoint row, which declares one endpoint. A row knows no transport: it gets parsed input and returns a plain value or a
 * Reply. HTTP routes, validation, authentication, OpenAPI, docs, MCP tools and generated tests all use the same row.
 */
import type { z } from 'zod'
import type { ErrorName } from './errors.ts'
import type { CancelSignal } from './loop/cancellation.ts'
import type { StreamPump } from './loop/stream-sink.ts'
import type { TracePlace } from './observe/tracing.ts'
import type { AccessRule, Principal } from './security/principal.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
/** Method and path, such as `GET /v1/models/{id+}`. `{name}` is one path segment, `{name+}` one or more (ids with slashes). */
export type At = `${Method} /${string}`

/** 'key': API key or agent token. 'session': cookie br_session (agent tokens may read). 'signature': the row itself checks a signature. */
export type AuthKind = 'key' | 'session' | 'key-or-session' | 'public' | 'signature'

/**
 * What a handler gets about its call in addition to the parsed input. `principal` can be null only on public rows and rows with a
 * signature.
 */
export interface Call<P extends Principal | null = Principal | null> {
  readonly principal: P
  readonly requestId: string
  /** The checked `x-br-agent-id` header, or null. An agent token ignores this header, because the token names the agent. Use `agentOf` for both cases. */
  readonly agentLabel: string | null
  /** The id of the run that the headers of a call of a model or tool name. Absent or null when they name none. */
  readonly runId?: string | null | undefined
  /** Registers such a call under its run, so that the end of the run cuts it. A second call has no effect. */
  readonly joinRun?: ((runKey: string) => void) | undefined
  /** The headers of such a call, for what it asks for its run, and for its tags. */
  readonly runHeaders?: Readonly<Record<string, string | string[] | undefined>> | undefined
  /** The name that an MCP client gives itself. It is not verified. */
  readonly clientName?: string
  /** The id that a header of the client gives to the conversation of the call. Absent when no header does. */
  readonly conversation?: string | undefined
  /** The checked `Idempotency-Key` of a charging call. */
  readonly idempotencyKey?: string | undefined
  /** What the headers of a charging call ask of the reply cache. Absent when they ask for nothing. */
  readonly replyCache?: CacheRequest | undefined
  /** Path of the called endpoint, for behaviour that depends on it. */
  readonly path?: string | undefined
  /** Aborts when the client disconnects, when the caller is revoked, and when the process must stop. */
  readonly signal: CancelSignal
  /** Public base URL of this gateway, without a trailing slash. */
  readonly baseUrl: string
  /**
   * Returns the address of the client, or the address that trusted proxies report. It is a function because the look-up has a small cost.
   */
  clientIp(): string
  /** The call's place in traces. Absent when the call is not traced. */
  readonly trace?: TracePlace | undefined
  /** Takes a place for a streamed reply until the reply ends. Absent when the caller already has one. Throws `places_taken`. */
  readonly holdStream?: (() => void) | undefined
  /** Gets the progress notes of a tool of an MCP server. It must not throw. */
  readonly onProgress?:
    | ((progress: { readonly progress: number; readonly total?: number | undefined; readonly message?: string | undefined }) => void)
    | undefined
  /** Is called for every route that a charging call tries. It must not throw. */
  readonly onRoute?: (step: RouteStep) => void
}

/** What a call asks of the reply cache. */
export interface CacheRequest {
  /** `use`: a stored reply serves the call. `refresh`: only a provider serves it, and its reply is stored. */
  readonly mode: 'use' | 'refresh'
  /** How old a stored reply may be, and how long a new one is kept. */
  readonly ttlSeconds: number
  /** What else may be stored: replies that call tools, and replies to a request with a temperature above 0. */
  readonly lets: { readonly tools: boolean; readonly sampled: boolean }
}

/** A step of a charging call on one route. The gateway connects to the route, and the route then answers or fails. */
export interface RouteStep {
  readonly outcome: 'dialed' | 'answered' | 'failed'
  readonly provider: string
  readonly model: string
  /** `india` only for a provider with proven residency in India. */
  readonly residency: 'india' | 'global'
  /** True when the call uses the caller's own provider key. */
  readonly byok: boolean
  /** Reason of a failure. Callers may read it. */
  readonly why?: string
}

/** How a relayed body ended. The edge reports this end, so that the pipeline settles the call exactly once. */
export type ReplyEnd = 'finished' | 'client-gone'

type Headers = Readonly<Record<string, string>>

/** A reply other than "200 and this JSON value". */
export class Reply {
  readonly status: number
  readonly headers: Headers
  readonly body: ReplyBody
  /** Values of `set-cookie`. Each is sent as its own header. */
  readonly cookies: readonly string[]
  constructor(status: number, headers: Headers, body: ReplyBody, cookies: readonly string[] = []) {
    this.status = status
    this.headers = headers
    this.body = body
    this.cookies = cookies
  }
}

export type ReplyBody =
  | { readonly kind: 'json'; readonly value: unknown }
  /** Bytes that are sent unchanged. The headers contain the content-type. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /**
   * A stream of bytes, written with backpressure. `pump` pushes it and ends early when the client disconnects. `keepAlive` is called after a
   * long silence and returns bytes to send, or null.
   */
  | { readonly kind: 'stream'; readonly pump: StreamPump; readonly keepAlive?: () => Uint8Array | null }
  | { readonly kind: 'empty' }

/** Functions that make replies. */
export const reply = {
  json: (value: unknown, status = 200, headers: Headers = {}): Reply => new Reply(status, headers, { kind: 'json', value }),
  text: (text: string, contentType: string, headers: Headers = {}, status = 200): Reply =>
    new Reply(status, { ...headers, 'content-type': contentType }, { kind: 'bytes', bytes: Buffer.from(text) }),
  bytes: (bytes: Uint8Array, headers: Headers, status = 200): Reply => new Reply(status, headers, { kind: 'bytes', bytes }),
  stream: (pump: StreamPump, headers: Headers, status = 200): Reply => new Reply(status, headers, { kind: 'stream', pump }),
  /** A stream that can send bytes during a silence, so that the connection stays open. */
  livingStream: (pump: StreamPump, keepAlive: () => Uint8Array | null, headers: Headers): Reply => new Reply(200, headers, { kind: 'stream', pump, keepAlive }),
  redirect: (location: string, headers: Headers = {}): Reply => new Reply(302, { ...headers, location }, { kind: 'empty' }),
  empty: (status: number, headers: Headers = {}): Reply => new Reply(status, headers, { kind: 'empty' }),
  /** Returns the same reply with cookies. */
  withCookies: ({ status, headers, body }: Reply, cookies: readonly string[]): Reply => new Reply(status, headers, body, cookies),
}

type Shape = z.ZodType
type Parsed<T> = T extends z.ZodType ? z.output<T> : undefined

/** A multipart form with fields and files in the order in which they arrived. */
export interface Form {
  readonly fields: readonly { readonly name: string; readonly value: string }[]
  readonly files: readonly FormFile[]
}

export interface FormFile {
  readonly field: string
  readonly filename: string
  readonly contentType: string
  readonly bytes: Buffer
}

/** A body that its handler reads while it arrives, once. No part of it is kept for the handler. */
export interface BodyStream {
  readonly contentType: string
  /** The bytes as they arrive. Rejects with `payload_too_large` and similar refusals, and when the client leaves. */
  readonly pieces: AsyncIterable<Buffer>
}

/**
 * How the body is read:
 * - 'json': parsed and validated.
 * - 'raw': bytes as they arrived. A schema describes a form, for the docs only.
 * - 'inference': bytes, with a schema for the docs only.
 * - 'multipart': a Form, with a schema for the docs only.
 * - 'stream': a BodyStream, with a schema for the docs only. It needs a `bodyLimitBytes`.
 * - 'form': application/x-www-form-urlencoded, validated. A name that occurs twice is a list. An empty value counts as absent.
 */
export type BodyKind = 'json' | 'raw' | 'inference' | 'multipart' | 'stream' | 'form'

export interface InputSpec {
  readonly path?: Shape
  readonly query?: Shape
  /** Lower-case header names. A handler never gets other headers. */
  readonly headers?: Shape
  readonly body?: Shape
  readonly bodyKind?: BodyKind
  /** Byte limit of the body. The default depends on bodyKind (settings: management 1 MiB, inference 32 MiB). */
  readonly bodyLimitBytes?: number
}

export interface Input<I extends InputSpec> {
  readonly path: Parsed<I['path']>
  readonly query: Parsed<I['query']>
  readonly headers: Parsed<I['headers']>
  /** Bytes for bodyKind 'raw' and 'inference', a Form for 'multipart', a BodyStream for 'stream'. */
  readonly body: I['bodyKind'] extends 'raw' | 'inference'
    ? Buffer
    : I['bodyKind'] extends 'multipart'
      ? Form
      : I['bodyKind'] extends 'stream'
        ? BodyStream
        : Parsed<I['body']>
}

/** The type of principal that a row of this auth kind gives to its handler. */
type PrincipalOf<A extends AuthKind> = A extends 'public' | 'signature' ? Principal | null : Principal

export interface EndpointRow<S = unknown, A extends AuthKind = AuthKind, I extends InputSpec = InputSpec> {
  readonly at: At
  /** The same handler under a second path with its own credential and access rule, for the console. */
  readonly twin?: { readonly at: At; readonly auth: AuthKind; readonly access: AccessRule }
  readonly auth: A
  readonly access: AccessRule
  /** Group in the docs: inference, catalog, agents, memory, usage, discovery, … */
  readonly tag: string
  readonly summary: string
  readonly input: I
  /** Schema of a 2xx JSON body, or the media type of another body. */
  readonly output: Shape | { readonly media: string }
  /** Status of a plain value. The default is 200. */
  readonly status?: number
  readonly errors: readonly ErrorName[]
  /**
   * The clients that the row is for, when it has a special protocol. 'anthropic': the key may also be in x-br-api-key or x-api-key, and
   * errors have that format's shape. 'gemini': the key may also be in x-goog-api-key or `?key=`, and errors have Google's shape. 'responses': a 429 that must not be retried has the type `insufficient_quota`. 'oauth': the key may also be the password of HTTP Basic, errors follow RFC 6749 §5.2, and replies must
   * not be stored.
   */
  readonly clients?: 'anthropic' | 'responses' | 'gemini' | 'oauth'
  /** True for rows that may charge money. They are matched before express, and limits and budgets apply. */
  readonly inference?: true
  /** True: a call of the row belongs to the run that its headers name. So does every call of an inference row. */
  readonly inRun?: true
  /** True: the row also answers while the process drains. */
  readonly always?: true
  /** True: a GET has an effect (makes a key, begins a sign-in), so HEAD is not answered. */
  readonly hasEffect?: true
  /**
   * False: the row changes something but is not an act of management (data of users, dry runs). A function returns the name of the act for this input, or
   * null when the input causes no act. When `audit` is left out and the row changes something, every call writes a line into the audit trail.
   */
  readonly audit?: false | ((input: Input<I>) => string | null)
  /** Throws when the configuration of the installation lacks something that this row needs. It runs after the access rule and before the body is read. */
  requires?(services: S): void
  handle(services: S, input: Input<I>, call: Call<PrincipalOf<A>>): Promise<unknown> | unknown
}

/** Makes a row with inferred types: `const row = endpointOf<{ agents: Agents }>()`, then `row({ at: …, handle(…) {…} })`. */
export function endpointOf<S>() {
  return <const A extends AuthKind, const I extends InputSpec>(row: EndpointRow<S, A, I>): EndpointRow<S, A, I> => row
}

/**
 * A row without its types, as the endpoint table and the edges use it. The services object in composition/gateway.ts satisfies all rows.
 */
// biome-ignore lint/suspicious/noExplicitAny: the table is a list of rows with different services; each row's own type was checked where it was made.
export type AnyRow = EndpointRow<any, any, any>
