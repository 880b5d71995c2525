/**
 * The parts of the MCP server that one caller can use: tools, resources, prompts, completion and change notifications. This file depends on no SDK,
 * and both protocol eras use the same surface. The server neither announces nor answers a part that a surface lacks. Decision 0250 says why.
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

/** The method for each kind of question that a server can ask its client during a call. The client declares these kinds as capabilities. */
export const questionMethods = { elicitation: 'elicitation/create', sampling: 'sampling/createMessage', roots: 'roots/list' } as const
export type QuestionKind = keyof typeof questionMethods

/** Questions to the client instead of an answer. The client repeats the call and includes its answers. */
export interface Questions {
  readonly questions: Readonly<Record<string, { readonly kind: QuestionKind; readonly params: Readonly<Record<string, unknown>> }>>
  /** State that the client sends back with the next call. */
  readonly state?: string
}

/** What a call can ask its client. In the initialize era a call cannot ask, because its server keeps no connection to the client. */
export interface Asked {
  /** Returns whether the client answers questions of this kind. Asking a client that does not answer them ends the call with -32021. */
  can(kind: QuestionKind): boolean
  /** The modes of elicitation that the client declares. */
  readonly modes: { readonly form: boolean; readonly url: boolean }
  /** The client's answers to the questions of the last round, by their names. They are not checked. */
  readonly answers: Readonly<Record<string, unknown>> | undefined
  /** The state that was sent with those questions. The client may have changed it. */
  readonly state: string | undefined
}

/** What a running tool receives about its call. */
export interface ToolRun {
  /** The questions to the client. Null when this client cannot be asked. */
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
  /** Returns one page of tools/list: the tools of `list` and those that must be looked up. Absent when `list` has all of them. Throws SurfaceError. */
  page?(cursor: string | undefined): Promise<{ tools: ToolEntry[]; nextCursor?: string }>
  has(name: string): boolean
  /** Returns the message for a name that `has()` does not know. */
  unknown(name: string): string
  /** Runs a tool that `has()` knows. A failure is an answer with `isError`. Throws SurfaceError only when the protocol has a code for the failure. */
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
  /** Returns one page of templates that must be looked up. Absent when `templates` has all of them. Throws SurfaceError. */
  templatesPage?(cursor: string | undefined, signal: AbortSignal): Promise<{ resourceTemplates: ResourceTemplateEntry[]; nextCursor?: string }>
  /** Returns the content of a resource. Throws SurfaceError. The error is `notThere` when the resource does not exist for this caller. */
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
  /** Returns one page of prompts that must be looked up. Absent when `list` has all of them. Throws SurfaceError. */
  page?(cursor: string | undefined, signal: AbortSignal): Promise<{ prompts: PromptEntry[]; nextCursor?: string }>
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

/** A change. `detail` describes it. A sink may merge several changes into one, because the reader reads the present state anyway. */
export type SurfaceChange = { readonly kind: ChangingList } | { readonly kind: 'resource'; readonly uri: string; readonly detail?: ChangeDetail }

export type ChangeDetail = Readonly<Record<string, unknown>>

export interface ChangeSink {
  notify(change: SurfaceChange): void
  /** Ends the stream in good order. The client may open another stream. */
  end(): void
}

/** The subscription that a listener requests. */
export interface ChangeParams {
  readonly lists: readonly ChangingList[]
  readonly uris: readonly string[]
}

export interface Listening {
  /** The part of the subscription that is granted. The acknowledgement contains it. */
  readonly granted: ChangeParams
  stop(): void
}

/** Change notifications. The discover era sends them on `subscriptions/listen`. The initialize era is stateless and has no stream for them. */
export interface ChangeSurface {
  /** The lists whose changes are reported. */
  readonly lists: readonly ChangingList[]
  /** Reports every change that is made after this promise resolves to `sink`, until `stop` is called. Throws SurfaceError. */
  listen(requested: ChangeParams, sink: ChangeSink): Promise<Listening>
}

export interface Surface {
  readonly tools: ToolSurface
  readonly resources?: ResourceSurface
  readonly prompts?: PromptSurface
  /** Completes an argument. Throws SurfaceError. */
  readonly complete?: (question: CompletionQuestion, signal: AbortSignal) => Promise<CompletionAnswer>
  readonly changes?: ChangeSurface
  /** Instructions in place of those of the gateway. */
  readonly instructions?: string
  /** True when the surface announces logging. Tools can then use `ToolRun.log`. */
  readonly logging?: true
}

/** Returns the surface of one POST. `url` is the path of the POST with its query. Throws GatewayError. */
export type SurfaceOf = (call: ToolCall, url: string | undefined) => Surface

/** The codes of JSON-RPC errors of a surface. `notThere` becomes -32602 on the wire of the discover era. */
export const surfaceErrorCodes = { badParams: -32602, notThere: -32002, internal: -32603, refused: -32000 } as const

/** A failure outside tools. Both SDKs can send it. */
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
