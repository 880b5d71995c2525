/** Judges the tools that a server lists: which of them can be kept, under which public name, with which hash and findings. */
import { nextTurn } from '../../../../platform/loop/next-turn.ts'
import type { ListedTool } from '../callable-tool.ts'
import { definitionHash } from './canonical.ts'
import { type Finding, findingsIn } from './findings.ts'
import { publicNameOf } from './public-name.ts'

/** A listed tool that can be kept. */
export interface ReceivedTool {
  /** The position in the list, from 0. */
  readonly position: number
  readonly upstreamName: string
  readonly publicName: string
  /** The definition as JSON, as received. */
  readonly definition: string
  /** SHA-256 of its canonical form, in hexadecimal. */
  readonly hash: string
  readonly findings: readonly Finding[]
}

/** Why a listed tool is not kept. A tool that is left out cannot be called, also when it was approved before. */
export interface LeftOut {
  /** The position in the list, from 0. */
  readonly position: number
  readonly reason: 'bad_name' | 'too_large' | 'too_deep' | 'not_canonical' | 'duplicate' | 'name_taken'
}

export interface Received {
  readonly tools: readonly ReceivedTool[]
  readonly leftOut: readonly LeftOut[]
}

/** Maximum number of bytes of one definition as JSON. */
export const definitionMaxBytes = 64 * 1024
/** Maximum depth of one definition. */
export const definitionMaxDepth = 64
/** Maximum length of a tool's own name. MCP asks servers for at most 128 characters. */
const nameMaxChars = 256
/** After this number of bytes of definitions, other work of the process runs. */
const turnBytes = 256 * 1024

/** Returns the tools of a list that can be kept, and why others cannot. Two tools with one name are both left out, because a call could mean either. */
export async function receivedTools(slug: string, listed: readonly ListedTool[]): Promise<Received> {
  const tools: ReceivedTool[] = []
  const leftOut: LeftOut[] = []
  const counts = new Map<unknown, number>()
  for (const { name } of listed) counts.set(name, (counts.get(name) ?? 0) + 1)
  const taken = new Set<string>()
  let bytes = 0
  for (const [position, tool] of listed.entries()) {
    const judged = (counts.get(tool.name) ?? 0) > 1 ? 'duplicate' : judge(slug, tool, position)
    if (typeof judged === 'string') leftOut.push({ position, reason: judged })
    else if (taken.has(judged.publicName)) leftOut.push({ position, reason: 'name_taken' })
    else {
      taken.add(judged.publicName)
      tools.push(judged)
      bytes += judged.definition.length
    }
    if (bytes > turnBytes) {
      bytes = 0
      await nextTurn()
    }
  }
  return { tools, leftOut }
}

function judge(slug: string, tool: ListedTool, position: number): ReceivedTool | LeftOut['reason'] {
  const { name } = tool
  if (typeof name !== 'string' || name.length === 0 || name.length > nameMaxChars || /[\p{Cc}\p{Cs}]/u.test(name)) return 'bad_name'
  if (isDeeper(tool, definitionMaxDepth)) return 'too_deep'
  const definition = JSON.stringify(tool)
  if (Buffer.byteLength(definition) > definitionMaxBytes) return 'too_large'
  try {
    const hash = definitionHash(slug, tool)
    return { position, upstreamName: name, publicName: publicNameOf(slug, name), definition, hash, findings: findingsIn(tool) }
  } catch {
    return 'not_canonical'
  }
}

/** Returns whether a value is nested deeper than `max`. It uses no recursion, because the depth of a stranger's JSON has no bound. */
function isDeeper(value: unknown, max: number): boolean {
  let level: unknown[] = [value]
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > max) return true
    level = level.flatMap(each => (typeof each === 'object' && each !== null ? Object.values(each) : []))
  }
  return false
}
