import type { HeavyTurns } from '../../../platform/loop/heavy-turns.ts'
import type { CallableTool, OrgTools } from '../registry/callable-tool.ts'
import { ToolIndex } from './tool-index.ts'

/** Finds tools by words. An index is made at the first search of a state of an organisation's tools, and is dropped with that state. No database is asked. */
export class ToolSearch {
  readonly #turns: Pick<HeavyTurns, 'run'>
  readonly #indexes = new WeakMap<OrgTools, Promise<ToolIndex>>()

  /** Indexes are made in `turns`, so that the tools of one organisation delay nobody else. */
  constructor(turns: Pick<HeavyTurns, 'run'>) {
    this.#turns = turns
  }

  /** Returns at most `limit` tools of an organisation that `may` accepts, best first. */
  async find(orgId: number, tools: OrgTools, query: string, limit: number, may: (tool: CallableTool) => boolean): Promise<CallableTool[]> {
    let index = this.#indexes.get(tools)
    if (index === undefined) {
      index = ToolIndex.of(tools.all(), work => this.#turns.run(orgId, work))
      this.#indexes.set(tools, index)
    }
    return (await index).find(query, limit, may)
  }
}
