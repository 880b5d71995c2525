import type { Client } from '@modelcontextprotocol/client'
import { z } from 'zod'
import { isObject } from '../../../platform/values/json.ts'
import type { ListedTool } from '../registry/callable-tool.ts'
import type { ExchangeOptions } from './exchange.ts'
import { checkedList, type Received } from './received-lists.ts'
import { UpstreamError } from './upstream-error.ts'

const pagesMax = 64
const toolsMax = 5000
const cursorMaxChars = 4096

const page = z.looseObject({
  // The SDK sees an empty list.
  tools: z.array(z.unknown()),
  nextCursor: z.string().max(cursorMaxChars).optional(),
})

const isTool = (item: unknown): item is ListedTool => isObject(item) && typeof item['name'] === 'string'

/** Reads all pages of definitions. Throws UpstreamError for a list that does not end, and for a cursor that comes a second time. */
export async function listedTools(client: Client, options: ExchangeOptions, received: Received): Promise<ListedTool[]> {
  const tools: ListedTool[] = []
  if (client.getServerCapabilities()?.tools === undefined) return tools
  const cursors = new Set<string>()
  let cursor: string | undefined
  for (let pages = 0; ; pages++) {
    if (pages === pagesMax) throw new UpstreamError('protocol', `the server has more than ${pagesMax} pages of tools`)
    const read: z.output<typeof page> = await client.request({ method: 'tools/list', ...(cursor === undefined ? {} : { params: { cursor } }) }, page, options)
    const listed = checkedList(received()['tools'], isTool)
    if (tools.length + listed.length > toolsMax) throw new UpstreamError('protocol', `the server has more than ${toolsMax} tools`)
    tools.push(...listed)
    cursor = read.nextCursor
    if (cursor === undefined) return tools
    if (cursors.has(cursor)) throw new UpstreamError('protocol', 'the list of tools has no end, because a cursor came a second time')
    cursors.add(cursor)
  }
}
