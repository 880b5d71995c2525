import type { Client } from '@modelcontextprotocol/client'
import { z } from 'zod'
import type { ExchangeOptions } from '../upstream/exchange.ts'
import { listsOf, type Received } from '../upstream/received-lists.ts'
import { UpstreamError } from '../upstream/upstream-error.ts'

/** What can be read of a server besides its tools. */
export type ReadMethod = 'resources/list' | 'resources/templates/list' | 'resources/read' | 'prompts/list' | 'prompts/get'

export interface ServerRead {
  readonly method: ReadMethod
  readonly params: Readonly<Record<string, unknown>>
  /** The most bytes of the result, as JSON. */
  readonly maxResultBytes: number
}

/** What a server without resources or prompts answers to their lists. */
const emptyLists: Readonly<Partial<Record<ReadMethod, Record<string, unknown>>>> = {
  'resources/list': { resources: [] },
  'resources/templates/list': { resourceTemplates: [] },
  'prompts/list': { prompts: [] },
}

const result = z.looseObject({ resultType: z.string().optional() })

/**
 * Reads once, and returns the result as the server sent it. A list of something that the server does not have is empty. Throws `too_large` for a result above its
 * bound, `protocol` for a question instead of a result, and the errors of the SDK.
 */
export async function readServer(
  client: Client,
  { method, params, maxResultBytes }: ServerRead,
  options: ExchangeOptions,
  received: Received,
): Promise<Record<string, unknown>> {
  const kind = method.startsWith('prompts/') ? 'prompts' : 'resources'
  const empty = emptyLists[method]
  if (empty !== undefined && client.getServerCapabilities()?.[kind] === undefined) return empty
  const read: z.output<typeof result> = await client.request({ method, params: { ...params } }, result, options)
  if (read.resultType !== undefined && read.resultType !== 'complete') throw new UpstreamError('protocol', 'the server asked a question instead of answering')
  const whole = { ...read, ...listsOf(received()) }
  const sizeBytes = Buffer.byteLength(JSON.stringify(whole))
  if (sizeBytes > maxResultBytes) throw new UpstreamError('too_large', `the result is larger than ${maxResultBytes} bytes`, { sizeBytes })
  return whole
}
