import { type Command, Option } from 'commander'
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { addClientFlags, addExamples, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { CommandError, wrongUsage } from '../command-error.ts'
import { plain, printFields, printJson, printLine, printTable, rupees } from '../command-output.ts'
import { confirmed } from '../operator/confirmation.ts'
import { budget } from '../option-values.ts'
import { type AgentRow, agentNamed, everyAgent } from './agent-lookup.ts'
import { addRuleOptions, agentFields, type RuleFlags, ruleParamsOf } from './agent-rules.ts'
import { addAgentTokenCommand, tokenCache } from './agent-token-command.ts'

interface CreateFlags extends ClientFlags, RuleFlags {
  readonly budgetInr?: number
}

/** Adds the commands `brigade agent …`: identities of agents, their tokens, budgets and revocation. */
export function addAgentCommands(program: Command): void {
  const agent = program.command('agent').description('identities of agents: token, create, update, list, budget, pause, resume, revoke')
  addAgentTokenCommand(agent)
  addCreate(agent)
  addUpdate(agent)
  addList(agent)
  addBudget(agent)
  addPause(agent)
  addResume(agent)
  addRevoke(agent)
}

function addCreate(agent: Command): void {
  const command = addRuleOptions(
    addClientFlags(agent.command('create').description('create an agent, or change the active agent of that name'))
      .argument('<name>', '1 to 100 characters')
      .option('--budget-inr <inr>', 'monthly budget in rupees', budget),
  )
  addExamples(command, [
    ['brigade agent create reviewer', 'an agent without rules'],
    ['brigade agent create reviewer --budget-inr 500', 'it stops at ₹500 a month'],
    ['brigade agent create ci --models sandbox-chat,sandbox-embed --max-cost-inr 2', 'two models, ₹2 a call'],
  ])
  command.action((name: string, flags: CreateFlags) =>
    withGateway(flags, async ({ client }) => {
      const reply = await client.send('POST', '/v1/me/agents', { json: { name, ...ruleParamsOf(flags) } })
      let made = (await reply.json()) as AgentRow
      if (flags.budgetInr !== undefined) made = await setBudget(client, made, flags.budgetInr, reply.status === 201)
      if (flags.json !== true) printLine(reply.status === 201 ? 'made' : 'was there')
      printAgent(made, flags)
    }),
  )
}

function addUpdate(agent: Command): void {
  const command = addRuleOptions(
    addClientFlags(agent.command('update').description('change the rules of an agent; a rule that is not named stays')).argument('<agent>', 'name or id'),
  )
  addExamples(command, [
    ['brigade agent update reviewer --models sandbox-chat', 'this model and no other'],
    ['brigade agent update reviewer --models none --max-cost-inr none', 'lifts both rules'],
    ['brigade agent update reviewer --run-max-calls 200 --run-loop stop', 'a run is held at 200 calls, and refused when it repeats itself'],
  ])
  command.action((named: string, flags: ClientFlags & RuleFlags) => {
    const params = ruleParamsOf(flags)
    if (Object.values(params).every(rule => rule === undefined))
      throw wrongUsage('say which rule to change, such as --max-cost-inr 2; brigade agent budget sets the budget.')
    return withGateway(flags, async ({ client }) => {
      const found = await agentNamed(client, named)
      printAgent(await client.json<AgentRow>('PATCH', `/v1/me/agents/${found.id}`, { json: params }), flags)
    })
  })
}

function printAgent(row: AgentRow, { json }: ClientFlags): void {
  if (json === true) printJson(row)
  else printFields(agentFields(row))
}

/** Sets the budget with a second request. If it fails, the first request stays in effect, and the message says so. */
async function setBudget(client: GatewayClient, made: AgentRow, inr: number, isNew: boolean): Promise<AgentRow> {
  try {
    return await client.json<AgentRow>('POST', `/v1/me/agents/${made.id}/budget`, { json: { monthly_budget_inr: inr } })
  } catch (thrown) {
    if (isNew) process.stderr.write(`brigade: the agent "${plain(made.name)}" (id ${made.id}) was made, but its budget was not set\n`)
    throw thrown
  }
}

function addList(agent: Command): void {
  const command = addClientFlags(agent.command('list').alias('ls').description('the agents of the organisation with budgets and spend of this month'))
  command.option('--all', 'revoked ones too')
  addExamples(command, [
    ['brigade agent list', 'active agents'],
    ['brigade agent list --all --json', 'all of them, for programs'],
  ])
  command.action((flags: ClientFlags & { readonly all?: boolean }) =>
    withGateway(flags, async ({ client }) => {
      const agents: AgentRow[] = []
      for await (const row of everyAgent(client)) {
        // The list has active agents first, so the first revoked agent ends it.
        if (flags.all !== true && row.status === 'revoked') break
        agents.push(row)
      }
      if (flags.json === true) printJson({ agents })
      else if (agents.length === 0) process.stderr.write('There is no agent yet. Make one: brigade agent create <name>\n')
      else printAgents(agents)
    }),
  )
}

function printAgents(agents: readonly AgentRow[]): void {
  const spent = rupees(agents.map(row => row.spend_month_inr))
  const budgets = agents.map(row => (row.monthly_budget_inr === null ? '-' : (rupees([row.monthly_budget_inr])[0] ?? '')))
  printTable(
    [
      { head: 'ID', align: 'right' },
      { head: 'NAME' },
      { head: 'STATUS' },
      { head: 'BUDGET ₹', align: 'right' },
      { head: 'SPENT ₹', align: 'right' },
      { head: 'PARENT' },
    ],
    agents.map((row, at) => [String(row.id), row.name, row.status, budgets[at] ?? '', spent[at] ?? '', row.parent_id === null ? '-' : String(row.parent_id)]),
  )
}

function addBudget(agent: Command): void {
  const command = addClientFlags(agent.command('budget').description('show, set or clear the monthly budget of an agent'))
    .argument('<agent>', 'name or id')
    .addOption(new Option('--inr <inr>', 'rupees a calendar month of Indian time').argParser(budget).conflicts('clear'))
    .option('--clear', 'no limit any more')
  addExamples(command, [
    ['brigade agent budget reviewer --inr 500', 'set'],
    ['brigade agent budget reviewer', 'what is set and spent'],
  ])
  command.action((named: string, flags: ClientFlags & { readonly inr?: number; readonly clear?: boolean }) =>
    withGateway(flags, async ({ client }) => {
      const found = await agentNamed(client, named)
      const budgetInr = flags.clear === true ? null : flags.inr
      const row =
        budgetInr === undefined ? found : await client.json<AgentRow>('POST', `/v1/me/agents/${found.id}/budget`, { json: { monthly_budget_inr: budgetInr } })
      printAgent(row, flags)
    }),
  )
}

function addPause(agent: Command): void {
  const command = addClientFlags(
    agent.command('pause').description('refuse the calls of an agent and its children until it is resumed; running ones stop'),
  ).argument('<agent>', 'name or id')
  addExamples(command, [['brigade agent pause reviewer', 'with the token of an agent, for agents below it']])
  command.action((named: string, flags: ClientFlags) => changeState(named, flags, 'pause'))
}

function addResume(agent: Command): void {
  const command = addClientFlags(agent.command('resume').description('let a paused agent go on, with the tokens that it has')).argument('<agent>', 'name or id')
  addExamples(command, [['brigade agent resume reviewer', 'what an owner or admin paused, they resume']])
  command.action((named: string, flags: ClientFlags) => changeState(named, flags, 'resume'))
}

function changeState(named: string, flags: ClientFlags, act: 'pause' | 'resume'): Promise<void> {
  return withGateway(flags, async ({ client }) => {
    const found = await agentNamed(client, named)
    const row = await client.json<AgentRow>('POST', await pathTo(client, found, act))
    if (flags.json === true) printJson(row)
    else printLine(`${act === 'pause' ? 'paused' : 'resumed'} ${plain(row.name)} (id ${row.id})`)
  })
}

/** Returns the path of the action. An agent that calls with its own token can stop only its descendants. */
async function pathTo(client: GatewayClient, { id }: AgentRow, act: 'pause' | 'resume' | 'revoke'): Promise<string> {
  const me = await client.json<{ agent?: { id: number } | null; credential?: string }>('GET', '/v1/me/whoami')
  return me.agent ? `/v1/me/agents/${me.agent.id}/children/${id}/${act}` : `/v1/me/agents/${id}/${act}`
}

function addRevoke(agent: Command): void {
  const command = addClientFlags(agent.command('revoke').description('permanently end an agent and its children: tokens and running calls stop immediately'))
    .argument('<agent>', 'name or id')
    .option('-y, --yes', 'do not ask')
  addExamples(command, [['brigade agent revoke reviewer --yes', 'in scripts']])
  command.action((named: string, flags: ClientFlags & { readonly yes?: boolean }) =>
    withGateway(flags, async ({ client }) => {
      const found = await agentNamed(client, named)
      const question = `Revoke the agent "${plain(found.name)}" (id ${found.id}) and its children permanently?`
      if (flags.yes !== true && !(await confirmed(question))) throw new CommandError('nothing was revoked.')
      const ended = await client.json<AgentRow>('POST', await pathTo(client, found, 'revoke'))
      tokenCache().forgetAgent(client.baseUrl, ended.id)
      if (flags.json === true) printJson(ended)
      else printLine(`revoked ${plain(ended.name)} (id ${ended.id})`)
    }),
  )
}
