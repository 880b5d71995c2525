import type { CallableTool, OrgTools } from '../registry/callable-tool.ts'
import { ToolIndex } from './tool-index.ts'

/** Finds tools by words. An index is made at the first search of a state of an organisation's tools, and is dropped with that state. No database is asked. */
export class ToolSearch {
  readonly #indexes = new WeakMap<OrgTools, Promise<ToolIndex>>()

  /** Returns at most `limit` tools that `may` accepts, best first. */
  async find(tools: OrgTools, query: string, limit: number, may: (tool: CallableTool) => boolean): Promise<CallableTool[]> {
    let index = this.#indexes.get(tools)
    if (index === undefined) {
      index = ToolIndex.of(tools.all())
      this.#indexes.set(tools, index)
    }
    return (await index).find(query, limit, may)
  }
}
