/**
 * What one caller sees of the MCP server, without any SDK: tools, resources, prompts, completion, news of changes. Both protocol eras
 * are served from the same surface, and what a surface lacks is neither announced nor answered. Decision 0250 says why.
 */
import type { ToolCall, ToolProgress } from './tools/toolbox/tool.ts'

/** What a resource holds: text, or bytes in base64. */
export type ResourceContents = { readonly uri: string; readonly mimeType?: string; readonly _meta?: { [key: string]: unknown } } & (
  | { readonly text: string }
  | { readonly blob: string }
)

/** A block of content in a tool's answer or in a prompt. */
export type Block =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'image' | 'audio'; readonly data: string; readonly mimeType: string }
  | { readonly type: 'resource_link'; readonly uri: string; readonly name: string; readonly mimeType?: string }
  | { readonly type: 'resource'; readonly resource: ResourceContents }

/** What a client can be asked in the middle of a call, by the capability that it declares. */
export const questionMethods = { elicitation: 'elicitation/create', sampling: 'sampling/createMessage', roots: 'roots/list' } as const
export type QuestionKind = keyof typeof questionMethods

/** Instead of an answer: questions to the client, which makes the same call again with what it says to them. */
export interface Questions {
  readonly questions: Readonly<Record<string, { readonly kind: QuestionKind; readonly params: Readonly<Record<string, unknown>> }>>
  /** Comes back with the next call. */
  readonly state?: string
}

/** What a call brings that may ask back. The initialize era has no such calls: its server would have to find the client again. */
export interface Asked {
  /** Whether the client answers such questions; asking one that it does not answer ends the call with -32021. */
  can(kind: QuestionKind): boolean
  /** What it said to the questions of the last round, by their names. Nothing in it is checked. */
  readonly answers: Readonly<Record<string, unknown>> | undefined
  /** The state that went with those questions. Anybody may have changed it. */
  readonly state: string | undefined
}

/** What a running tool gets of its call. */
export interface ToolRun {
  /** Null: this caller cannot be asked. */
  readonly asked: Asked | null
  /** Aborts when the client cancels or goes away. */
  readonly signal: AbortSignal
  /** Present when the client asked for progress. */
  readonly report: ((progress: ToolProgress) => void) | null
  /** Tells the client's log; it does nothing unless the surface announces `logging`. */
  log(level: 'debug' | 'info' | 'warning' | 'error', data: unknown): void
}

export interface ToolAnswer {
  [key: string]: unknown
  readonly content: Block[]
  readonly structuredContent?: Record<string, unknown>
  readonly isError?: true
}

/** A tool as tools/list shows it. */
export interface ToolEntry {
  [key: string]: unknown
  readonly name: string
  readonly inputSchema: { [key: string]: unknown; readonly type: 'object' }
}

export interface ToolSurface {
  /** How many tools run now. */
  readonly running: number
  /** Bytes of pictures that the answers so far have. Left out: no tool makes pictures. */
  readonly pictureBytes?: number
  list(): ToolEntry[]
  has(name: string): boolean
  /** What to say of a name that `has()` does not know. */
  unknown(name: string): string
  /** Runs a tool that `has()` knows. A failure is an answer with `isError`; only what the protocol has a code for throws, SurfaceError. */
  run(name: string, args: unknown, run: ToolRun): Promise<ToolAnswer | Questions>
}

/** A resource as resources/list shows it. */
export interface ResourceEntry {
  [key: string]: unknown
  readonly uri: string
  readonly name: string
}

/** A family of resources as resources/templates/list shows it. */
export interface ResourceTemplateEntry {
  [key: string]: unknown
  readonly uriTemplate: string
  readonly name: string
}

export interface ResourceSurface {
  /** One page. Throws SurfaceError. */
  list(cursor: string | undefined, signal: AbortSignal): Promise<{ resources: ResourceEntry[]; nextCursor?: string }>
  templates(): ResourceTemplateEntry[]
  /** Throws SurfaceError; `notThere` when there is no such resource for this caller. */
  read(uri: string, signal: AbortSignal): Promise<ResourceContents[]>
}

/** A prompt as prompts/list shows it. */
export interface PromptEntry {
  [key: string]: unknown
  readonly name: string
  readonly arguments?: { name: string; description?: string; required?: boolean }[]
}

export interface PromptMessage {
  readonly role: 'user' | 'assistant'
  readonly content: Block
}

export interface PromptSurface {
  list(): PromptEntry[]
  /** Throws SurfaceError. `asked` is null for a caller who cannot be asked. */
  get(
    name: string,
    args: Readonly<Record<string, string>>,
    signal: AbortSignal,
    asked: Asked | null,
  ): Promise<{ description?: string; messages: PromptMessage[] } | Questions>
}

/** What completion/complete asks: the argument of a prompt, or the variable of a resource template. */
export interface CompletionQuestion {
  readonly ref: { readonly type: 'ref/prompt'; readonly name: string } | { readonly type: 'ref/resource'; readonly uri: string }
  readonly argument: { readonly name: string; readonly value: string }
}

/** At most 100 values. `total` only where it is known. */
export interface CompletionAnswer {
  readonly values: string[]
  readonly total?: number
  readonly hasMore?: boolean
}

/** Lists that can change while somebody listens. */
export type ChangingList = 'tools' | 'prompts' | 'resources'

/** Something that changed; `detail` says what about it. A sink may fold several into one: the reader looks at the present state anyway. */
export type SurfaceChange = { readonly kind: ChangingList } | { readonly kind: 'resource'; readonly uri: string; readonly detail?: ChangeDetail }

export type ChangeDetail = Readonly<Record<string, unknown>>

export interface ChangeSink {
  notify(change: SurfaceChange): void
  /** Ends the stream in good order; the client may listen anew. */
  end(): void
}

/** What a listener asks for. */
export interface ChangeParams {
  readonly lists: readonly ChangingList[]
  readonly uris: readonly string[]
}

export interface Listening {
  /** The part of the request that is told; the client reads it in the acknowledgement. */
  readonly granted: ChangeParams
  stop(): void
}

/** News of changes: the `subscriptions/listen` of the discover era. The stateless initialize era has no stream to send them on. */
export interface ChangeSurface {
  /** The lists whose changes are told. */
  readonly lists: readonly ChangingList[]
  /** Tells `sink` of every change that is made once this has resolved, until `stop` is called. Throws SurfaceError. */
  listen(requested: ChangeParams, sink: ChangeSink): Promise<Listening>
}

export interface Surface {
  readonly tools: ToolSurface
  readonly resources?: ResourceSurface
  readonly prompts?: PromptSurface
  /** Throws SurfaceError. */
  readonly complete?: (question: CompletionQuestion, signal: AbortSignal) => Promise<CompletionAnswer>
  readonly changes?: ChangeSurface
  /** Announces logging, for tools that use `ToolRun.log`. */
  readonly logging?: true
}

/** Makes the surface of one POST; `url` is its path with the query. Throws GatewayError. */
export type SurfaceOf = (call: ToolCall, url: string | undefined) => Surface

/** Codes of JSON-RPC that a surface answers with. `notThere` becomes -32602 on the wire of the discover era. */
export const surfaceErrorCodes = { badParams: -32602, notThere: -32002, internal: -32603, refused: -32000 } as const

/** A failure outside tools, as both SDKs send it. */
export class SurfaceError extends Error {
  override readonly name = 'SurfaceError'
  readonly code: number
  readonly data: Readonly<Record<string, unknown>> | undefined
  constructor(kind: keyof typeof surfaceErrorCodes, message: string, data?: Readonly<Record<string, unknown>>) {
    super(message)
    this.code = surfaceErrorCodes[kind]
    this.data = data
  }
}
