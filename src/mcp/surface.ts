/**
 * The parts of the MCP server that one caller can use, without any SDK: tools, resources, prompts, completion and change notifications. Both protocol
 * eras use the same surface. A part that a surface lacks is neither announced nor answered. Decision 0250 says why.
 */
import type { ToolCall, ToolProgress } from './tools/toolbox/tool.ts'

/** The content of a resource: text, or bytes in base64. */
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

/** The methods of questions to a client in the middle of a call, by the capability that the client declares. */
export const questionMethods = { elicitation: 'elicitation/create', sampling: 'sampling/createMessage', roots: 'roots/list' } as const
export type QuestionKind = keyof typeof questionMethods

/** Questions to the client instead of an answer. The client repeats the call with its answers to them. */
export interface Questions {
  readonly questions: Readonly<Record<string, { readonly kind: QuestionKind; readonly params: Readonly<Record<string, unknown>> }>>
  /** State that the client sends back with the next call. */
  readonly state?: string
}

/** The questions that a call may ask its client. The initialize era has none, because its server cannot find the client again. */
export interface Asked {
  /** Returns whether the client answers questions of this kind. A question to a client that does not answer them ends the call with -32021. */
  can(kind: QuestionKind): boolean
  /** The answers to the questions of the last round, by their names. They are not checked. */
  readonly answers: Readonly<Record<string, unknown>> | undefined
  /** The state that was sent with those questions. The client may have changed it. */
  readonly state: string | undefined
}

/** What a running tool gets from its call. */
export interface ToolRun {
  /** Null when this caller cannot be asked. */
  readonly asked: Asked | null
  /** Aborts when the client cancels or disconnects. */
  readonly signal: AbortSignal
  /** Reports progress. Null unless the client asked for progress. */
  readonly report: ((progress: ToolProgress) => void) | null
  /** Writes to the client's log. It does nothing unless the surface announces `logging`. */
  log(level: 'debug' | 'info' | 'warning' | 'error', data: unknown): void
}

export interface ToolAnswer {
  [key: string]: unknown
  readonly content: Block[]
  readonly structuredContent?: Record<string, unknown>
  readonly isError?: true
}

/** A tool in the form of tools/list. */
export interface ToolEntry {
  [key: string]: unknown
  readonly name: string
  readonly inputSchema: { [key: string]: unknown; readonly type: 'object' }
}

export interface ToolSurface {
  /** The number of tools that run now. */
  readonly running: number
  /** Bytes of pictures in the answers so far. It is left out when the tools make no pictures. */
  readonly pictureBytes?: number
  list(): ToolEntry[]
  has(name: string): boolean
  /** Returns the message for a name that `has()` does not know. */
  unknown(name: string): string
  /** Runs a tool that `has()` knows. A failure is an answer with `isError`. Throws SurfaceError only for failures that have a code in the protocol. */
  run(name: string, args: unknown, run: ToolRun): Promise<ToolAnswer | Questions>
}

/** A resource in the form of resources/list. */
export interface ResourceEntry {
  [key: string]: unknown
  readonly uri: string
  readonly name: string
}

/** A family of resources in the form of resources/templates/list. */
export interface ResourceTemplateEntry {
  [key: string]: unknown
  readonly uriTemplate: string
  readonly name: string
}

export interface ResourceSurface {
  /** Returns one page. Throws SurfaceError. */
  list(cursor: string | undefined, signal: AbortSignal): Promise<{ resources: ResourceEntry[]; nextCursor?: string }>
  templates(): ResourceTemplateEntry[]
  /** Returns the content of a resource. Throws SurfaceError, which is `notThere` when there is no such resource for this caller. */
  read(uri: string, signal: AbortSignal): Promise<ResourceContents[]>
}

/** A prompt in the form of prompts/list. */
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
  /** Returns the messages of a prompt. `asked` is null for a caller that cannot be asked. Throws SurfaceError. */
  get(
    name: string,
    args: Readonly<Record<string, string>>,
    signal: AbortSignal,
    asked: Asked | null,
  ): Promise<{ description?: string; messages: PromptMessage[] } | Questions>
}

/** The subject of a completion: the argument of a prompt, or the variable of a resource template. */
export interface CompletionQuestion {
  readonly ref: { readonly type: 'ref/prompt'; readonly name: string } | { readonly type: 'ref/resource'; readonly uri: string }
  readonly argument: { readonly name: string; readonly value: string }
}

/** At most 100 values. `total` is present only when it is known. */
export interface CompletionAnswer {
  readonly values: string[]
  readonly total?: number
  readonly hasMore?: boolean
}

/** Lists that can change while a client listens. */
export type ChangingList = 'tools' | 'prompts' | 'resources'

/** A change, which `detail` describes. A sink may merge several changes into one, because the reader reads the present state anyway. */
export type SurfaceChange = { readonly kind: ChangingList } | { readonly kind: 'resource'; readonly uri: string; readonly detail?: ChangeDetail }

export type ChangeDetail = Readonly<Record<string, unknown>>

export interface ChangeSink {
  notify(change: SurfaceChange): void
  /** Ends the stream in good order. The client may listen again. */
  end(): void
}

/** The subscription that a listener requests. */
export interface ChangeParams {
  readonly lists: readonly ChangingList[]
  readonly uris: readonly string[]
}

export interface Listening {
  /** The part of the subscription that is served. The client reads it in the acknowledgement. */
  readonly granted: ChangeParams
  stop(): void
}

/** Change notifications, which the discover era sends on `subscriptions/listen`. The stateless initialize era has no stream for them. */
export interface ChangeSurface {
  /** The lists whose changes are reported. */
  readonly lists: readonly ChangingList[]
  /** Reports to `sink` every change that is made after this promise resolves, until `stop` is called. Throws SurfaceError. */
  listen(requested: ChangeParams, sink: ChangeSink): Promise<Listening>
}

export interface Surface {
  readonly tools: ToolSurface
  readonly resources?: ResourceSurface
  readonly prompts?: PromptSurface
  /** Completes an argument. Throws SurfaceError. */
  readonly complete?: (question: CompletionQuestion, signal: AbortSignal) => Promise<CompletionAnswer>
  readonly changes?: ChangeSurface
  /** True when the surface announces logging, for tools that use `ToolRun.log`. */
  readonly logging?: true
}

/** Returns the surface of one POST. `url` is its path with the query. Throws GatewayError. */
export type SurfaceOf = (call: ToolCall, url: string | undefined) => Surface

/** The codes of JSON-RPC errors of a surface. `notThere` becomes -32602 on the wire of the discover era. */
export const surfaceErrorCodes = { badParams: -32602, notThere: -32002, internal: -32603, refused: -32000 } as const

/** A failure outside tools, in the form that both SDKs send. */
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
