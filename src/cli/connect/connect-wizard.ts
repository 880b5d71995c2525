/** `brigade connect` without a client: finds the clients of this computer, asks, writes and checks. */
import { connectGuide } from '../../connect/connect-elsewhere.ts'
import { type ClientName, type ConnectParams, clientNames, type Platform, paramShapes } from '../../connect/connect-plan.ts'
import { programPlaces } from '../../platform/config.ts'
import { CommandError, exitCodes, wrongUsage } from '../command-error.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { isAnswered, openQuestions, type Questions } from '../terminal/questions.ts'
import { expectGateway } from './connect-check.ts'
import { type ConnectFlags, paramsOf, thisPlace } from './connect-params.ts'
import { connectClients, credentialedClient } from './connect-run.ts'
import { clientTitles, type FoundClient, findClients } from './find-clients.ts'

/** The name of the agent when the person presses Enter, and with --yes. */
const agentByDefault = 'coder'
const left = 'nothing was written.'
const triesMax = 5

/** Connects the clients that the person chooses. With --yes, these are all that were found. Throws CommandError (2) when nobody can answer. */
export async function runWizard(flags: ConnectFlags): Promise<void> {
  const place = await thisPlace()
  const paramsFor = (client: ClientName): ConnectParams => wizardParams(client, flags)
  const found = findClients(paramsFor, place, programPlaces())
  if (flags.yes !== true && !isAnswered()) {
    printFound(found, paramsFor, flags)
    throw wrongUsage('say which client: brigade connect <client> --write. Or connect all of them with --yes.')
  }
  if (found.length === 0)
    throw new CommandError(
      `no coding client was found on this computer. brigade connect knows ${clientNames.join(', ')}; name one to connect it all the same.`,
      {
        exitCode: exitCodes.notFound,
        code: 'not_found',
      },
    )
  const { baseUrl } = paramsFor('codex')
  await expectGateway(baseUrl)
  await credentialedClient(flags)
  if (flags.yes === true) {
    const answers = { ...flags, agent: flags.agent ?? agentByDefault }
    const clients = found.map(({ client }) => client)
    return connectClients(clients, answers, client => wizardParams(client, answers))
  }
  const questions = openQuestions(left)
  try {
    const { clients, answers } = await asked(questions, found, flags, baseUrl)
    await connectClients(
      clients,
      answers,
      client => wizardParams(client, answers),
      () => questions.confirm('Write these settings?', true),
    )
  } finally {
    questions.close()
  }
}

/** Returns the parameters for one of several clients. Flags that only some clients know do not apply to the others. */
function wizardParams(client: ClientName, flags: ConnectFlags): ConnectParams {
  const params = paramsOf(client, flags)
  const canTrust = client === 'claude-code' || client === 'codex'
  const canModels = client !== 'cursor' && client !== 'vscode'
  return {
    ...params,
    scope: flags.project ? 'project' : 'user',
    trustTools: params.trustTools && canTrust,
    models: params.models === 'yes' && !canModels ? 'default' : params.models,
    tools: params.tools || !canModels,
  }
}

async function asked(
  questions: Questions,
  found: readonly FoundClient[],
  flags: ConnectFlags,
  baseUrl: string,
): Promise<{ clients: ClientName[]; answers: ConnectFlags }> {
  printLine(`Clients on this computer, to connect to ${plain(baseUrl)}:\n`)
  found.forEach(({ client, program, settings }, at) => {
    printLine(`  ${at + 1}  ${clientTitles[client].padEnd(12)} ${plain(program ?? settings ?? '')}`)
  })
  printLine('')
  const clients = await choose(questions, found)
  const agent = flags.agent ?? (await agentName(questions))
  const hasModels = clients.some(client => client !== 'cursor' && client !== 'vscode')
  const isTold = flags.models === true || flags.tools === true
  const models = isTold || !hasModels || (await questions.confirm('Should their model calls go through Brigade too? No: only tools and memory.', true))
  const { agent: _given, ...rest } = flags
  return { clients, answers: { ...rest, ...(agent === null ? {} : { agent }), ...(models ? {} : { tools: true }) } }
}

async function choose(questions: Questions, found: readonly FoundClient[]): Promise<ClientName[]> {
  for (let tries = 0; tries < triesMax; tries++) {
    const answer = await questions.ask(`Which ones? Numbers, or Enter for all${found.length === 1 ? '' : ` ${found.length}`}: `, 'all')
    if (/^all$/i.test(answer)) return found.map(({ client }) => client)
    const words = answer.split(/[\s,]+/).filter(word => word !== '')
    const chosen = words.map(word => found[Number(word) - 1] ?? found.find(({ client }) => client === word))
    if (chosen.every(one => one !== undefined)) return [...new Set(chosen.map(({ client }) => client))]
    process.stderr.write(`Type numbers from 1 to ${found.length}, such as 1,2.\n`)
  }
  throw new CommandError(left)
}

/** Returns the name, or null when the clients call with the key. */
async function agentName(questions: Questions): Promise<string | null> {
  for (let tries = 0; tries < triesMax; tries++) {
    const answer = await questions.ask(`Name of the agent that they run as (Enter: ${agentByDefault}; -: your key, no agent): `, agentByDefault)
    if (answer === '-') return null
    if (paramShapes.agent.test(answer)) return answer
    process.stderr.write('A name has 1 to 100 characters and no control characters.\n')
  }
  throw new CommandError(left)
}

/** Prints the clients with the command line that connects each. */
function printFound(found: readonly FoundClient[], paramsFor: (client: ClientName) => ConnectParams, { json }: ConnectFlags): void {
  const rows = found.map(one => ({ ...one, command: connectGuide(one.client, paramsFor(one.client), process.platform as Platform).command }))
  if (json === true) {
    printJson({ clients: rows })
    return
  }
  if (rows.length === 0) printLine(`No coding client was found on this computer. brigade connect knows ${clientNames.join(', ')}.`)
  for (const { client, program, settings, command } of rows) printLine(`${clientTitles[client]}  (${plain(program ?? settings ?? '')})\n  ${plain(command)}`)
}
