import type { ToolRule } from '../../../agents/listing/tool-rules.ts'
import { fail } from '../../../platform/errors.ts'
import { serverPatternOf } from '../../../platform/security/tool-patterns.ts'
import type { CallableTool, ToolCatalog } from '../registry/callable-tool.ts'

export interface AgentToolsDeps {
  readonly catalog: ToolCatalog
  /** Returns the rule of an agent and those of the agents above it, nearest first. Null: there is no such agent. */
  rulesOf(orgId: number, agentId: number): Promise<readonly ToolRule[] | null>
}

/** What to show of the tools of an organisation. */
export interface ShownTools {
  /** The patterns to judge by. Undefined: the rule that the agent has. */
  readonly patterns: readonly string[] | undefined
  /** A part of the name, in lower case. */
  readonly text: string | undefined
  /** True: the tools that no pattern matches, too. */
  readonly isAll: boolean
  /** The name behind which the page begins. */
  readonly after: string | null
  readonly limit: number
}

/** A tool as one agent sees it. */
export interface JudgedTool {
  readonly tool: CallableTool
  /** The pattern that matches it: its name before `slug__*`. Null: none does. */
  readonly pattern: string | null
  /** The nearest agent above whose rule does not allow it. */
  readonly stoppedBy: ToolRule | null
}

/** A page of judged tools, with sums over all tools of the organisation. */
export interface JudgedTools {
  readonly tools: readonly JudgedTool[]
  /** The name behind which the next page begins. */
  readonly next: string | null
  /** Number of tools that the agent may call. */
  readonly allowed: number
  /** Number of approved tools of the organisation. */
  readonly total: number
  /** Each pattern with the number of approved tools that it matches, in the order of the rule. */
  readonly matches: ReadonlyMap<string, number>
}

/** Says which tools an agent may call, and which pattern or which agent above decides it. A person sees it before and after a change of the rule. */
export class AgentTools {
  readonly #deps: AgentToolsDeps
  constructor(deps: AgentToolsDeps) {
    this.#deps = deps
  }

  /** Judges the approved tools by a rule and by the rules of the agents above, as a call would. No server is asked. Throws `not_found`. */
  async judge(orgId: number, agentId: number, { patterns, text, isAll, after, limit }: ShownTools): Promise<JudgedTools> {
    const rules = await this.#deps.rulesOf(orgId, agentId)
    const [own, ...above] = rules ?? []
    if (own === undefined) throw fail('not_found', { message: 'There is no such agent.' })
    const all = (await this.#deps.catalog.of(orgId)).all()
    const matches = new Map([...new Set(patterns ?? own.allowedTools ?? [])].map(pattern => [pattern, 0]))
    const bounds = above.map(rule => ({ rule, set: new Set(rule.allowedTools ?? []) }))
    const page: JudgedTool[] = []
    let allowed = 0
    let hasMore = false
    for (const tool of all) {
      const server = serverPatternOf(tool.publicName)
      for (const pattern of [tool.publicName, server]) if (matches.has(pattern)) matches.set(pattern, (matches.get(pattern) ?? 0) + 1)
      const pattern = [tool.publicName, server].find(each => matches.has(each)) ?? null
      const stoppedBy = bounds.find(({ set }) => !set.has(tool.publicName) && !set.has(server))?.rule ?? null
      if (pattern !== null && stoppedBy === null) allowed++
      const isShown = (isAll || pattern !== null) && (text === undefined || tool.publicName.toLowerCase().includes(text))
      if (!isShown || (after !== null && tool.publicName <= after)) continue
      if (page.length < limit) page.push({ tool, pattern, stoppedBy })
      else hasMore = true
    }
    return { tools: page, next: hasMore ? (page.at(-1)?.tool.publicName ?? null) : null, allowed, total: all.length, matches }
  }
}
