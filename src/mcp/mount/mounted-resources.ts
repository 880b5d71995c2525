import type { McpRows } from '../mcp-rows.ts'
import type { RowReader } from '../row-reader.ts'
import type { ResourceContents, ResourceEntry, ResourceSurface, ResourceTemplateEntry } from '../surface.ts'
import { orNothing } from './or-nothing.ts'

/** The resources of one MCP server, read by the endpoint rows. A caller whose rules do not cover the server sees none. */
export class MountedResources implements ResourceSurface {
  readonly #slug: string
  readonly #rows: McpRows
  readonly #reader: RowReader

  constructor(slug: string, rows: McpRows, reader: RowReader) {
    this.#slug = slug
    this.#rows = rows
    this.#reader = reader
  }

  async list(cursor: string | undefined, signal: AbortSignal): Promise<{ resources: ResourceEntry[]; nextCursor?: string }> {
    const input = { path: { slug: this.#slug }, query: cursor === undefined ? {} : { cursor } }
    const page = orNothing(this.#reader.json(this.#rows.listServerResources, input, signal), { resources: [] })
    return (await page) as { resources: ResourceEntry[]; nextCursor?: string }
  }

  templates(): ResourceTemplateEntry[] {
    return []
  }

  async templatesPage(cursor: string | undefined, signal: AbortSignal): Promise<{ resourceTemplates: ResourceTemplateEntry[]; nextCursor?: string }> {
    const input = { path: { slug: this.#slug }, query: cursor === undefined ? {} : { cursor } }
    const page = orNothing(this.#reader.json(this.#rows.listServerTemplates, input, signal), { resourceTemplates: [] })
    return (await page) as { resourceTemplates: ResourceTemplateEntry[]; nextCursor?: string }
  }

  async read(uri: string, signal: AbortSignal): Promise<ResourceContents[]> {
    const input = { path: { slug: this.#slug }, query: { uri } }
    const { contents } = (await this.#reader.json(this.#rows.readServerResource, input, signal, uri)) as { contents: ResourceContents[] }
    return contents
  }
}
