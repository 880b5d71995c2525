/**
 * Completes memory keys for the resource template, and names for the arguments of prompts. Every answer is bounded. A failure gives an empty answer,
 * because completion only helps the user to type.
 */
import { z } from 'zod'
import type { McpRows } from '../mcp-rows.ts'
import type { MemoryWatch } from '../news/memory-news.ts'
import type { RowReader } from '../row-reader.ts'
import { type CompletionAnswer, type CompletionQuestion, SurfaceError } from '../surface.ts'
import { memoryTemplate } from './memory-uri.ts'

export interface CompletionDeps {
  readonly rows: McpRows
  readonly reader: RowReader
  readonly memory: Pick<MemoryWatch, 'scopesOf'>
  /** Names of the prompts of this caller. */
  readonly promptNames: readonly string[]
}

/** Maximum number of values. The protocol sets it. */
const valuesMax = 100
const nothing: CompletionAnswer = { values: [], total: 0, hasMore: false }

const listPage = z.looseObject({
  keys: z.array(z.looseObject({ key: z.string() })),
  prefixes: z.array(z.string()).default([]),
  next_cursor: z.string().nullable(),
})
const agentList = z.looseObject({ agents: z.array(z.looseObject({ name: z.string() })) })

/** Completes a typed value. Throws SurfaceError for an unknown prompt or template. */
export async function complete({ ref, argument }: CompletionQuestion, deps: CompletionDeps, signal: AbortSignal): Promise<CompletionAnswer> {
  if (ref.type === 'ref/resource') {
    if (ref.uri !== memoryTemplate) throw new SurfaceError('badParams', `There is no resource template ${ref.uri.slice(0, 128)}.`)
    return argument.name === 'key' ? quietly(() => keysFor(argument.value, deps, signal)) : nothing
  }
  if (!deps.promptNames.includes(ref.name)) throw new SurfaceError('badParams', `There is no prompt ${ref.name.slice(0, 128)}.`)
  if (argument.name === 'prefix') return quietly(() => keysFor(argument.value, deps, signal))
  if (argument.name === 'to') return quietly(() => agentsFor(argument.value, deps, signal))
  return nothing
}

/** Returns one level of memory: keys, and folders with a slash at the end. The client can complete a folder further. */
async function keysFor(typed: string, { rows, reader, memory }: CompletionDeps, signal: AbortSignal): Promise<CompletionAnswer> {
  if (!reader.may(rows.memory.list)) return nothing
  if (!typed.includes('/')) {
    const scopes = (await memory.scopesOf(reader.call.principal)).filter(scope => scope.startsWith(typed))
    return bounded(scopes, scopes.length > valuesMax)
  }
  const page = listPage.parse(await reader.json(rows.memory.list, { query: { prefix: typed, delimiter: '/', limit: String(valuesMax) } }, signal))
  return bounded([...page.prefixes, ...page.keys.map(({ key }) => key)].sort(), page.next_cursor !== null)
}

async function agentsFor(typed: string, { rows, reader }: CompletionDeps, signal: AbortSignal): Promise<CompletionAnswer> {
  if (!reader.may(rows.listAgents)) return nothing
  const { agents } = agentList.parse(await reader.json(rows.listAgents, { query: { limit: '200' } }, signal))
  const names = [...new Set(agents.map(({ name }) => name))].filter(name => name.toLowerCase().startsWith(typed.toLowerCase()))
  return bounded(names, names.length > valuesMax)
}

function bounded(values: readonly string[], hasMore: boolean): CompletionAnswer {
  return { values: values.slice(0, valuesMax), hasMore, ...(hasMore ? {} : { total: values.length }) }
}

async function quietly(work: () => Promise<CompletionAnswer>): Promise<CompletionAnswer> {
  try {
    return await work()
  } catch {
    return nothing
  }
}
