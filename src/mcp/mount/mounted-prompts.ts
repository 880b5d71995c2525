import type { McpRows } from '../mcp-rows.ts'
import type { RowReader } from '../row-reader.ts'
import type { PromptEntry, PromptMessage, PromptSurface } from '../surface.ts'
import { orNothing } from './or-nothing.ts'

/** The prompts of one MCP server, read by the endpoint rows. A caller whose rules do not cover the server sees none. */
export class MountedPrompts implements PromptSurface {
  readonly #slug: string
  readonly #rows: McpRows
  readonly #reader: RowReader

  constructor(slug: string, rows: McpRows, reader: RowReader) {
    this.#slug = slug
    this.#rows = rows
    this.#reader = reader
  }

  list(): PromptEntry[] {
    return []
  }

  async page(cursor: string | undefined, signal: AbortSignal): Promise<{ prompts: PromptEntry[]; nextCursor?: string }> {
    const input = { path: { slug: this.#slug }, query: cursor === undefined ? {} : { cursor } }
    const page = orNothing(this.#reader.json(this.#rows.listServerPrompts, input, signal), { prompts: [] })
    return (await page) as { prompts: PromptEntry[]; nextCursor?: string }
  }

  async get(name: string, args: Readonly<Record<string, string>>, signal: AbortSignal): Promise<{ description?: string; messages: PromptMessage[] }> {
    const input = { path: { slug: this.#slug, name }, body: { arguments: { ...args } } }
    return (await this.#reader.json(this.#rows.getServerPrompt, input, signal)) as { description?: string; messages: PromptMessage[] }
  }
}
