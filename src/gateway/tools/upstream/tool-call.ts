import type { Client } from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { ExchangeOptions } from './exchange.ts'
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

export interface ToolCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly inputSchema: unknown
  readonly onProgress: ((progress: Progress) => void) | undefined
  readonly maxResultBytes: number
}

const result = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })).default([]),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
  _meta: z.record(z.string(), z.unknown()).optional(),
})

/** Calls the tool once. Throws `too_large` for a result above its bound, and the errors of the SDK. */
export async function calledTool(
  client: Client,
  { name, args, inputSchema, onProgress, maxResultBytes }: ToolCall,
  options: ExchangeOptions,
): Promise<CallToolResult> {
  const send = client.request.bind(client)
  // The SDK's own method writes the headers of the arguments, but its schema drops members that it does not know.
  const raw = (request: { method: string; params?: Record<string, unknown> }, own: ExchangeOptions): Promise<unknown> => send(request, result, own)
  client.request = raw as typeof client.request
  const definition = { name, inputSchema: (inputSchema ?? { type: 'object' }) as { type: 'object' } }
  const read = (await client.callTool(
    { name, arguments: args as Record<string, unknown> },
    { ...options, toolDefinition: definition, ...(onProgress === undefined ? {} : { onprogress: onProgress }) },
  )) as z.output<typeof result>
  const { content, structuredContent, isError, _meta } = read
  const shown: CallToolResult = {
    content,
    ...(structuredContent === undefined ? {} : { structuredContent }),
    ...(isError === undefined ? {} : { isError }),
    ...(_meta === undefined ? {} : { _meta }),
  }
  const sizeBytes = Buffer.byteLength(JSON.stringify(shown))
  if (sizeBytes > maxResultBytes) throw new UpstreamError('too_large', `the result is larger than ${maxResultBytes} bytes`, { sizeBytes })
  return shown
}
