/**
 * One endpoint, declared once. A row is transport-free: parsed input in, plain value (or a typed Reply) out. The HTTP route,
 * validation, authentication, OpenAPI, docs, the MCP tool and the generated tests all read the same row.
 */
import type { z } from 'zod'
import type { ErrorName } from './errors.ts'
import type { CancelSignal } from './loop/cancellation.ts'
import type { TracePlace } from './observe/tracing.ts'
import type { AccessRule, Principal } from './security/principal.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
/** `GET /v1/models/{id+}`: `{name}` is one path segment, `{name+}` one or more (ids with slashes). */
export type At = `${Method} /${string}`

/** 'key': API key or agent token · 'session': br_session cookie (agent tokens may read) · 'signature': the row checks it itself. */
export type AuthKind = 'key' | 'session' | 'key-or-session' | 'public' | 'signature'

/** What a handler knows of its call beside the parsed input. `principal` is null on public rows only. */
export interface Call<P extends Principal | null = Principal | null> {
  readonly principal: P
  readonly requestId: string
  /** The checked `x-br-agent-id` header, or null. From an agent token the token's agent wins; callers use `agentOf`. */
  readonly agentLabel: string | null
  /** What an MCP client calls itself; its own word. */
  readonly clientName?: string
  /** The checked `Idempotency-Key` of a charging call. */
  readonly idempotencyKey?: string
  /** Path of the endpoint that was called, for what must differ by it. */
  readonly path?: string
  /** Aborts when the client goes away, when the caller is revoked and when the process must stop. */
  readonly signal: CancelSignal
  /** Public base URL of this gateway, without a trailing slash. */
  readonly baseUrl: string
  /** Address of the client; with trusted proxies the address that they report. A function, because looking it up costs a little. */
  clientIp(): string
  /** The call's place in traces; left out when nothing is traced. */
  readonly trace?: TracePlace
  /** Takes one of the places for streamed replies, until the reply has ended. Left out: the caller holds one already. Throws `places_taken`. */
  readonly holdStream?: () => void
  /** Told of every route that a charging call tries, as it happens. It must not throw. */
  readonly onRoute?: (step: RouteStep) => void
}

/** One route of a charging call: it is dialed, and then it answers or fails. */
export interface RouteStep {
  readonly outcome: 'dialed' | 'answered' | 'failed'
  readonly provider: string
  readonly model: string
  /** Only a provider that is proven to be in India counts as india. */
  readonly residency: 'india' | 'global'
  /** On the caller's own provider key. */
  readonly byok: boolean
  /** Why it failed, in words that a caller may read. */
  readonly why?: string
}

/** How a relayed body ended; the edge reports it so that the pipeline settles exactly once. */
export type ReplyEnd = 'finished' | 'client-gone'

type Headers = Readonly<Record<string, string>>

/** A reply that is more than "200 and this JSON value". */
export class Reply {
  readonly status: number
  readonly headers: Headers
  readonly body: ReplyBody
  /** Values of `set-cookie`, each sent as a header of its own. */
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
  /** Bytes unchanged; the content-type is in the headers. */
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  /**
   * A stream of bytes, written with backpressure; iteration stops (`return()`) when the client is gone. `keepAlive` is asked when
   * nothing has been sent for long: what may go out now to keep the client waiting, or null.
   */
  | { readonly kind: 'stream'; readonly chunks: AsyncIterable<Uint8Array>; readonly keepAlive?: () => Uint8Array | null }
  | { readonly kind: 'empty' }

/** Makers of replies. */
export const reply = {
  json: (value: unknown, status = 200, headers: Headers = {}): Reply => new Reply(status, headers, { kind: 'json', value }),
  text: (text: string, contentType: string, headers: Headers = {}, status = 200): Reply =>
    new Reply(status, { ...headers, 'content-type': contentType }, { kind: 'bytes', bytes: Buffer.from(text) }),
  bytes: (bytes: Uint8Array, headers: Headers, status = 200): Reply => new Reply(status, headers, { kind: 'bytes', bytes }),
  stream: (chunks: AsyncIterable<Uint8Array>, headers: Headers, status = 200): Reply => new Reply(status, headers, { kind: 'stream', chunks }),
  /** A stream that can say something when it has nothing to say. */
  livingStream: (chunks: AsyncIterable<Uint8Array>, keepAlive: () => Uint8Array | null, headers: Headers): Reply =>
    new Reply(200, headers, { kind: 'stream', chunks, keepAlive }),
  redirect: (location: string, headers: Headers = {}): Reply => new Reply(302, { ...headers, location }, { kind: 'empty' }),
  empty: (status: number, headers: Headers = {}): Reply => new Reply(status, headers, { kind: 'empty' }),
  /** The same reply with cookies. */
  withCookies: ({ status, headers, body }: Reply, cookies: readonly string[]): Reply => new Reply(status, headers, body, cookies),
}

type Shape = z.ZodType
type Parsed<T> = T extends z.ZodType ? z.output<T> : undefined

/** A multipart form: fields and files in the order in which they came. */
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

/** How the body is read. 'json': parsed and validated · 'raw': bytes as they came; a schema says that they are a form, for the docs only · 'inference': bytes, with a schema for the docs only · 'multipart': a Form, with a schema for the docs only · 'form': application/x-www-form-urlencoded, validated; a name that occurs twice is a list, an empty value is none. */
export type BodyKind = 'json' | 'raw' | 'inference' | 'multipart' | 'form'

export interface InputSpec {
  readonly path?: Shape
  readonly query?: Shape
  /** Lower-case header names. Unlisted headers never reach a handler. */
  readonly headers?: Shape
  readonly body?: Shape
  readonly bodyKind?: BodyKind
  /** Byte limit of the body; default by bodyKind (config: management 1 MiB, inference 32 MiB). */
  readonly bodyLimitBytes?: number
}

export interface Input<I extends InputSpec> {
  readonly path: Parsed<I['path']>
  readonly query: Parsed<I['query']>
  readonly headers: Parsed<I['headers']>
  /** For bodyKind 'raw' and 'inference' the bytes, for 'multipart' the form. */
  readonly body: I['bodyKind'] extends 'raw' | 'inference' ? Buffer : I['bodyKind'] extends 'multipart' ? Form : Parsed<I['body']>
}

/** The principal that a row of this auth kind hands to its handler. */
type PrincipalOf<A extends AuthKind> = A extends 'public' | 'signature' ? Principal | null : Principal

export interface EndpointRow<S = unknown, A extends AuthKind = AuthKind, I extends InputSpec = InputSpec> {
  readonly at: At
  /** The same handler under another path with its own credential and rule (console twins). */
  readonly twin?: { readonly at: At; readonly auth: AuthKind; readonly access: AccessRule }
  readonly auth: A
  readonly access: AccessRule
  /** Group in the docs: inference, catalog, agents, memory, usage, discovery, … */
  readonly tag: string
  readonly summary: string
  readonly input: I
  /** Schema of a 2xx JSON body, or the media type of another. */
  readonly output: Shape | { readonly media: string }
  /** Status of a plain value; default 200. */
  readonly status?: number
  readonly errors: readonly ErrorName[]
  /**
   * Whose clients call the row, when it is not open to all. 'anthropic': the key may also be in x-br-api-key or x-api-key, and errors have that format's
   * shape. 'oauth': the key may also be the password of HTTP Basic, errors are those of RFC 6749 §5.2, nothing may be stored.
   */
  readonly clients?: 'anthropic' | 'oauth'
  /** True for rows that may charge money: matched before express, limits and budgets apply. */
  readonly inference?: true
  /** True: answered while the process drains, too. */
  readonly always?: true
  /** True: reading it does something (makes a key, begins a sign-in), so HEAD is not answered. */
  readonly hasEffect?: true
  /**
   * False: a write that is no act of management (data of users, dry runs). A function: a write that is an act for some inputs; it returns the
   * name of the act, or null. Every other row that changes something leaves a line in the audit trail.
   */
  readonly audit?: false | ((input: Input<I>) => string | null)
  /** Throws when the installation is not configured for this row. It runs after the access rule and before the body is read. */
  requires?(services: S): void
  handle(services: S, input: Input<I>, call: Call<PrincipalOf<A>>): Promise<unknown> | unknown
}

/** Makes a row with its types inferred: `const row = endpointOf<{ agents: Agents }>()`, then `row({ at: …, handle(…) {…} })`. */
export function endpointOf<S>() {
  return <const A extends AuthKind, const I extends InputSpec>(row: EndpointRow<S, A, I>): EndpointRow<S, A, I> => row
}

/** A row with its types erased, as the table and the edges hold it. The services object of composition/gateway.ts satisfies all of them. */
// biome-ignore lint/suspicious/noExplicitAny: the table is a list of rows with different services; each row's own type was checked where it was made.
export type AnyRow = EndpointRow<any, any, any>
