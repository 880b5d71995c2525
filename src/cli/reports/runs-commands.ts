import type { Command } from 'commander'
import { addClientFlags, addExamples, type CalledGateway, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { printFields, printJson, printLine, printResult, printTable, rupees } from '../command-output.ts'
import { count } from '../option-values.ts'

interface Figures {
  readonly calls: number
  readonly errors: number
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly cached_share: number | null
  readonly cost_inr: number
  readonly value_inr: number
}

interface Run extends Figures {
  readonly run_id: string
  readonly agent_id: number | null
  readonly agent_name: string | null
  readonly key_id: number | null
  readonly key_name: string | null
  readonly state: string
  readonly first_at: string
  readonly last_at: string
  readonly tags: Readonly<Record<string, string>>
}

interface WholeRun extends Run {
  readonly max_cost_inr: number | null
  readonly max_calls: number | null
  readonly max_minutes: number | null
  readonly max_subagents: number | null
  readonly by_model: readonly (Figures & { readonly model: string })[]
  readonly by_subagent: readonly (Figures & { readonly subagent: string | null })[]
  readonly by_agent: readonly (Figures & { readonly agent_id: number | null; readonly agent_name: string | null })[]
}

interface RunsPage {
  readonly runs: readonly Run[]
  readonly next_cursor: string | null
}

interface OwnerFlags extends ClientFlags {
  readonly agentId?: number
  readonly keyId?: number
}

interface ListFlags extends OwnerFlags {
  readonly from?: string
  readonly tag?: string
  readonly limit?: number
}

const path = '/v1/me/runs'
const pageMax = 200

/** Adds the commands `brigade runs`, `brigade runs show` and `brigade runs end`. */
export function addRunsCommands(program: Command): void {
  const runs = addOwnerFlags(addClientFlags(program.command('runs').description('what each job used: calls, tokens, rupees of its run')))
    .option('--from <day>', 'only runs with a call on this day or later, YYYY-MM-DD, Indian time')
    .option('--tag <key=value>', 'only runs with this tag')
    .option('--limit <count>', 'number of runs (default: 20)', count)
  addExamples(runs, [
    ['brigade runs', 'the latest'],
    ['brigade runs --agent-id 7 --from 2026-11-01', 'of an agent and its children since a day'],
    ['brigade runs show pr-1234', 'one run, by model and by agent'],
  ])
  runs.action((flags: ListFlags) => withGateway(flags, gateway => list(gateway, flags)))
  const show = addOwnerFlags(addClientFlags(runs.command('show').description('one run with its sums by model and by agent'))).argument(
    '<id>',
    'the id that the calls of the run name',
  )
  addExamples(show, [
    ['brigade runs show pr-1234', 'a run of this credential, or the only one with this id'],
    ['brigade runs show pr-1234 --json', 'for a step of a CI job that prints what it cost'],
  ])
  // A flag that both commands have may be written before or after "show".
  show.action((id: string, _flags: OwnerFlags, command: Command) => {
    const flags = command.optsWithGlobals<OwnerFlags>()
    return withGateway(flags, gateway => showOne(gateway, id, flags))
  })
  addEnd(runs)
  addTags(runs)
}

function addEnd(runs: Command): void {
  const end = addOwnerFlags(addClientFlags(runs.command('end').description('cut the running calls of a run and refuse its later ones, for good'))).argument(
    '<id>',
    'the id that the calls of the run name',
  )
  addExamples(end, [
    ['brigade runs end pr-1234', 'a run of this key, or the only one with this id'],
    ['brigade runs end pr-1234 --agent-id 7', 'the run of an agent, also before its first call has ended'],
  ])
  end.action((id: string, _flags: OwnerFlags, command: Command) => {
    const flags = command.optsWithGlobals<OwnerFlags>()
    return withGateway(flags, async ({ client }) => {
      const ended = await client.json<object>('POST', `${path}/${encodeURIComponent(id)}/end`, { query: ownerQuery(flags) })
      printResult(ended, flags.json === true)
    })
  })
}

interface TagReport {
  readonly values: readonly (Figures & { readonly value: string; readonly runs: number })[]
}

interface TagFlags extends ClientFlags {
  readonly from?: string
  readonly to?: string
}

function addTags(runs: Command): void {
  const tags = addClientFlags(runs.command('tags').description('what the runs of at most 31 days used, by the value of a tag'))
    .argument('<key>', 'the key of the tag, such as pr')
    .option('--to <day>', 'the last day, YYYY-MM-DD, Indian time (default: today)')
  addExamples(tags, [
    ['brigade runs tags pr', 'what each pull request cost'],
    ['brigade runs tags repo --from 2026-11-01', 'what each repository cost since a day'],
  ])
  tags.action((key: string, _flags: TagFlags, command: Command) => {
    const flags = command.optsWithGlobals<TagFlags>()
    return withGateway(flags, async ({ client }) => {
      const report = await client.json<TagReport>('GET', `/v1/me/run-tags/${encodeURIComponent(key)}`, { query: { from: flags.from, to: flags.to } })
      if (flags.json === true) return printJson(report)
      printParts(
        key.toUpperCase(),
        report.values.map(part => ({ ...part, what: part.value })),
      )
    })
  })
}

const ownerQuery = ({ agentId, keyId }: OwnerFlags) => ({ agent_id: agentId, key_id: keyId })

function addOwnerFlags(command: Command): Command {
  return command.option('--agent-id <id>', 'of the family of this agent', count).option('--key-id <id>', 'of this key', count)
}

async function list({ client }: CalledGateway, flags: ListFlags): Promise<void> {
  const limit = flags.limit ?? 20
  const runs: Run[] = []
  let cursor: string | undefined
  do {
    const query = { ...ownerQuery(flags), from: flags.from, tag: flags.tag, cursor, limit: Math.min(pageMax, limit - runs.length) }
    const page: RunsPage = await client.json('GET', path, { query })
    runs.push(...page.runs)
    cursor = page.next_cursor ?? undefined
  } while (cursor !== undefined && runs.length < limit)
  if (flags.json === true) printJson({ runs })
  else if (runs.length === 0) printLine('No runs. A call belongs to a run when its client sends a session id, or a header x-br-run-id.')
  else printRuns(runs)
}

function printRuns(runs: readonly Run[]): void {
  const costs = rupees(runs.map(run => run.cost_inr))
  printTable(
    [
      { head: 'RUN' },
      { head: 'OF' },
      { head: 'STATE' },
      { head: 'CALLS', align: 'right' },
      { head: 'ERRORS', align: 'right' },
      { head: 'TOKENS', align: 'right' },
      { head: 'COST ₹', align: 'right' },
      { head: 'LAST CALL' },
    ],
    runs.map((run, at) => [
      run.run_id,
      ownerOf(run),
      run.state,
      String(run.calls),
      String(run.errors),
      String(run.prompt_tokens + run.completion_tokens),
      costs[at] ?? '',
      run.last_at,
    ]),
  )
}

function ownerOf({ agent_id, agent_name, key_id, key_name }: Run): string {
  if (agent_id !== null) return `agent ${agent_name ?? '?'} (id ${agent_id})`
  return key_id === null ? '' : `key ${key_name ?? '?'} (id ${key_id})`
}

async function showOne({ client }: CalledGateway, id: string, flags: OwnerFlags): Promise<void> {
  const run = await client.json<WholeRun>('GET', `${path}/${encodeURIComponent(id)}`, { query: ownerQuery(flags) })
  if (flags.json === true) return printJson(run)
  const [cost, value] = rupees([run.cost_inr, run.value_inr])
  printFields({
    run: run.run_id,
    of: ownerOf(run),
    state: run.state,
    first: run.first_at,
    last: run.last_at,
    calls: `${run.calls}, ${run.errors} failed`,
    tokens: `${run.prompt_tokens} in, ${run.completion_tokens} out`,
    cached: run.cached_share === null ? '-' : `${Math.round(run.cached_share * 1000) / 10} % of the tokens in`,
    cost: `₹${cost}`,
    value: `₹${value}`,
    caps: capsOf(run),
    tags: tagsText(run.tags),
  })
  printLine('')
  printParts(
    'MODEL',
    run.by_model.map(part => ({ ...part, what: part.model })),
  )
  printLine('')
  printParts(
    'AGENT',
    run.by_agent.map(part => ({ ...part, what: part.agent_id === null ? '(no agent)' : `${part.agent_name ?? '?'} (id ${part.agent_id})` })),
  )
  if (run.by_subagent.length === 0) return
  printLine('')
  printParts(
    'SUB-AGENT',
    run.by_subagent.map(part => ({ ...part, what: part.subagent ?? '(main agent)' })),
  )
}

const tagsText = (tags: Run['tags']): string =>
  Object.entries(tags)
    .map(([key, value]) => `${key}=${value}`)
    .join(', ') || 'none'

function capsOf({ max_cost_inr: cost, max_calls: calls, max_minutes: minutes, max_subagents: subagents }: WholeRun): string {
  const caps = [
    ...(cost === null ? [] : [`cost ₹${rupees([cost])[0]}`]),
    ...(calls === null ? [] : [`calls ${calls}`]),
    ...(minutes === null ? [] : [`minutes ${minutes}`]),
    ...(subagents === null ? [] : [`sub-agents ${subagents}`]),
  ]
  return caps.length === 0 ? 'none' : caps.join(', ')
}

function printParts(head: string, parts: readonly (Figures & { readonly what: string })[]): void {
  const costs = rupees(parts.map(part => part.cost_inr))
  const right = (text: string) => ({ head: text, align: 'right' }) as const
  printTable(
    [{ head }, right('CALLS'), right('ERRORS'), right('TOKENS IN'), right('TOKENS OUT'), right('COST ₹')],
    parts.map((part, at) => [part.what, String(part.calls), String(part.errors), String(part.prompt_tokens), String(part.completion_tokens), costs[at] ?? '']),
  )
}
