/** Counts the sub-agents of runs with a cap on them. A process asks the database once for each sub-agent. Decision 0812 gives the reasons. */
import type { Db } from '../../../../platform/db/db.ts'
import { fail } from '../../../../platform/errors.ts'
import { subagentsMost } from '../../../../platform/security/run-caps.ts'
import { findSubagent, insertSubagent, lockRunNumber } from './cap-queries.ts'
import type { CappedRun } from './capped-runs.ts'

/** A sub-agent as a call names it. */
export interface NamedSubagent {
  readonly name: string
  /** The sub-agent that made it. Null: the main agent did, or nobody says. */
  readonly above: string | null
}

/** The caps that bind a call. Null means no cap. */
export interface SubagentCaps {
  readonly most: number | null
  readonly depth: number | null
}

/**
 * Lets a sub-agent into its run. Known sub-agents may go on when the cap is reached. Returns a promise when the sub-agent is new to this process. Throws
 * `run_subagents_exceeded`.
 */
export function enterSubagent(db: Db, run: CappedRun, subagent: NamedSubagent, caps: SubagentCaps): void | Promise<void> {
  const depth = run.seen.get(seenKey(run, subagent.name))
  if (depth === undefined) return enterNew(db, run, subagent, caps)
  checkDepth(run, depth, caps.depth)
}

const seenKey = ({ number }: Pick<CappedRun, 'number'>, name: string): string => `${number}/${name}`

/** Throws `run_subagents_exceeded` for a sub-agent that is too deep in its family. */
export function checkDepth(run: Pick<CappedRun, 'runId'>, depth: number, cap: number | null): void {
  if (cap === null || depth <= cap) return
  throw fail('run_subagents_exceeded', {
    message: `Sub-agents of this run may have a depth of at most ${cap} (max_depth), and this one has ${depth}. Do not retry: an agent above it can do its work.`,
    extra: { scope: 'run', run_id: run.runId, cap, spent: depth, held: 0 },
  })
}

async function enterNew(db: Db, run: CappedRun, { name, above }: NamedSubagent, caps: SubagentCaps): Promise<void> {
  const most = Math.min(caps.most ?? subagentsMost, subagentsMost)
  const found = await db.tx(async tx => {
    // Without the lock, two processes would both let the last sub-agent in.
    if ((await tx.maybe(lockRunNumber, run.number)) === null) throw fail('database_unavailable')
    const { depth: known, aboveDepth, count } = await tx.one(findSubagent, run.number, name, above)
    if (known !== null) return known
    const depth = (aboveDepth ?? 0) + 1
    checkDepth(run, depth, caps.depth)
    if (count >= most)
      throw fail('run_subagents_exceeded', {
        message: `This run may have ${most} sub-agents (max_subagents). Do not retry: the sub-agents that it has can go on, and its owner can raise the cap.`,
        extra: { scope: 'run', run_id: run.runId, cap: most, spent: count, held: 0 },
      })
    await tx.exec(insertSubagent, run.number, name, depth)
    return depth
  })
  run.seen.set(seenKey(run, name), found)
  checkDepth(run, found, caps.depth)
}
