import type { Client } from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { ExchangeOptions } from './exchange.ts'
import { checkedList, isBlock, type Received } from './received-lists.ts'
import { UpstreamError } from './upstream-error.ts'

/** A block of a result: text, image, audio, a resource or a link to one. Its other members are as the server sent them. */
export interface ContentBlock {
  readonly type: string
  readonly [member: string]: unknown
}

/** The result of a tool as the server sent it. */
export interface CallToolResult {
  readonly content: readonly ContentBlock[]
  readonly structuredContent?: unknown
  readonly isError?: boolean | undefined
  readonly _meta?: Readonly<Record<string, unknown>> | undefined
}

/** A note about the progress of a call. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** The modes of elicitation that the client of a call declares, and its answers to the questions of the last round. */
export interface SentAnswers {
  readonly modes: { readonly form: boolean; readonly url: boolean }
  readonly answers?: Readonly<Record<string, unknown>>
  /** The state that the server gave with its questions. */
  readonly state?: string
}

/** Questions of a server in place of a result. */
export interface ServerQuestions {
  readonly requests: Readonly<Record<string, { readonly method: string; readonly params?: Readonly<Record<string, unknown>> | undefined }>>
  readonly state?: string | undefined
}

export interface ToolCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly inputSchema: unknown
  readonly onProgress: ((progress: Progress) => void) | undefined
  /** What the client can be asked. Null: nothing, so the server is not told that it may ask. */
  readonly asked: SentAnswers | null
  readonly maxResultBytes: number
}

const result = z.looseObject({
  // The SDK sees an empty list.
  content: z.array(z.unknown()).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
  _meta: z.record(z.string(), z.unknown()).optional(),
})

const questions = z.object({
  resultType: z.literal('input_required'),
  inputRequests: z.record(z.string().max(128), z.looseObject({ method: z.string(), params: z.record(z.string(), z.unknown()).optional() })).default({}),
  requestState: z.string().optional(),
})
/** The key in `_meta` of the capabilities of a client. A server of 2026-07-28 reads them with each request. */
const capabilitiesKey = 'io.modelcontextprotocol/clientCapabilities'

/** Returns what a call says of its client. Only a modern server can ask: an older one would ask in another request. */
function askable(client: Client, asked: SentAnswers | null): { readonly params: Record<string, unknown>; readonly options: object } {
  if (asked === null || client.getProtocolEra() !== 'modern') return { params: {}, options: {} }
  const { modes, answers, state } = asked
  const elicitation = { ...(modes.form ? { form: {} } : {}), ...(modes.url ? { url: {} } : {}) }
  return {
    params: {
      _meta: { [capabilitiesKey]: { elicitation } },
      ...(answers === undefined ? {} : { inputResponses: answers }),
      ...(state === undefined ? {} : { requestState: state }),
    },
    options: { allowInputRequired: true },
  }
}

/** Calls the tool once. Returns its result, or the questions of its server. Throws `too_large` for a result above its bound, and the errors of the SDK. */
export async function calledTool(
  client: Client,
  { name, args, inputSchema, onProgress, asked, maxResultBytes }: ToolCall,
  options: ExchangeOptions,
  received: Received,
): Promise<CallToolResult | ServerQuestions> {
  const asking = askable(client, asked)
  const send = client.request.bind(client)
  // The SDK's own method writes the headers of the arguments, but its schema drops members that it does not know.
  const raw = (request: { method: string; params?: Record<string, unknown> }, own: ExchangeOptions): Promise<unknown> => send(request, result, own)
  client.request = raw as typeof client.request
  const definition = { name, inputSchema: (inputSchema ?? { type: 'object' }) as { type: 'object' } }
  const read = (await client.callTool(
    { name, arguments: args as Record<string, unknown>, ...asking.params },
    { ...options, ...asking.options, toolDefinition: definition, ...(onProgress === undefined ? {} : { onprogress: onProgress }) },
  )) as z.output<typeof result>
  const sizeOf = (value: unknown): void => {
    const sizeBytes = Buffer.byteLength(JSON.stringify(value))
    if (sizeBytes > maxResultBytes) throw new UpstreamError('too_large', `the result is larger than ${maxResultBytes} bytes`, { sizeBytes })
  }
  const question = questions.safeParse(read)
  if (question.success) {
    sizeOf(question.data)
    return { requests: question.data.inputRequests, state: question.data.requestState }
  }
  const { structuredContent, isError, _meta } = read
  const content = checkedList(received()['content'], isBlock)
  const shown: CallToolResult = {
    content,
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === undefined ? {} : { isError }),
    ...(_meta === undefined ? {} : { _meta }),
  }
  sizeOf(shown)
  return shown
}
