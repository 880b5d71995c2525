/** Writes the plans of one or several clients and checks each of them. Nothing is written before the gateway and the agent are known. */
import { gatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { notesOf, planConnect } from '../../connect/connect.ts'
import type { ClientName, ConnectParams } from '../../connect/connect-plan.ts'
import { systemIds } from '../../platform/values/ids.ts'
import { credentialOf } from '../client-settings.ts'
import { CommandError, commandErrorOf } from '../command-error.ts'
import { printJson, printLine } from '../command-output.ts'
import { gatewayFetch } from '../gateway-fetch.ts'
import { expectGateway, findAgent, makeAgent, type ReadyAgent } from './connect-check.ts'
import { type ConnectFlags, settingsOf, supported, thisPlace } from './connect-params.ts'
import { printAgent, printChecked, printNotes, printWritten } from './connect-print.ts'
import { previewPlan, writePlan } from './connect-write.ts'
import { clientTitles } from './find-clients.ts'
import { type Checked, verifyClient } from './verify-client.ts'

/** Returns a client of the gateway with the credential of the flags. Throws CommandError when there is none, or when the gateway refuses it. */
export async function credentialedClient(flags: ConnectFlags) {
  const settings = settingsOf(flags)
  const client = gatewayClient({ baseUrl: settings.baseUrl, credential: credentialOf(settings).reveal(), fetch: gatewayFetch(settings.baseUrl) })
  return called(settings, async () => {
    await client.json('GET', '/v1/me/whoami')
    return client
  })
}

/**
 * Writes the clients and checks each with a call. Before that it looks whether the gateway answers, and it finds or makes the agent. `isWanted` is asked after
 * the person has seen the changes; without it, they are written. Throws CommandError when nothing could be written, and when a check fails.
 */
export async function connectClients(
  clients: readonly ClientName[],
  flags: ConnectFlags,
  paramsFor: (client: ClientName) => ConnectParams,
  isWanted?: () => Promise<boolean>,
): Promise<void> {
  const place = await thisPlace()
  const planned = clients.map(client => {
    const params = paramsFor(client)
    return { client, params, plan: supported(() => planConnect(client, params, place)) }
  })
  // A file that cannot be changed is found before the first file is written.
  const previews = planned.map(({ client, plan }) => ({ client, files: previewPlan(plan) }))
  const settings = settingsOf(flags)
  await expectGateway(settings.baseUrl)
  const make = await agentOf(flags)
  if (isWanted !== undefined) {
    for (const { client, files } of previews) {
      printLine(`\n${clientTitles[client]}:`)
      printWritten(files, true)
    }
    printLine('')
    if (!(await isWanted())) throw new CommandError('nothing was written.')
  }
  const agent = await make()
  const isJson = flags.json === true
  if (agent !== null && !isJson) printAgent(agent)
  const results = []
  for (const { client, params, plan } of planned) {
    const files = writePlan(plan, () => systemIds.secret('', 6))
    const notes = notesOf(plan, params, place)
    if (!isJson) printWritten(files)
    const checked = await verifyClient(client, plan, params, settings)
    if (!isJson) printChecked(checked)
    const { client: _name, ...check } = checked
    results.push({ client, files, commands: plan.commands, notes, check })
  }
  // Several clients have most notes in common.
  if (!isJson) printNotes([...new Set(results.flatMap(({ notes }) => notes))])
  if (isJson) printJson(results.length === 1 ? { ...results[0], agent } : { clients: results, agent })
  failIfAny(results)
}

/** Finds the agent of the flags. Returns a function that returns it, and that makes it when it is missing. Throws CommandError for one that was ended. */
async function agentOf(flags: ConnectFlags): Promise<() => Promise<ReadyAgent | null>> {
  const named = flags.agent
  if (named === undefined) return async () => null
  const client = await credentialedClient(flags)
  const settings = settingsOf(flags)
  const found = await called(settings, () => findAgent(client, named))
  return async () => found ?? called(settings, () => makeAgent(client, named))
}

function failIfAny(results: readonly { readonly client: ClientName; readonly check: Omit<Checked, 'client'> }[]): void {
  const failed = results.filter(({ check }) => check.state === 'failed')
  if (failed.length === 0) return
  const names = failed.map(({ client }) => clientTitles[client]).join(', ')
  throw new CommandError(`the settings of ${names} are written, but the check failed: ${failed[0]?.check.detail}`)
}

async function called<T>(settings: ReturnType<typeof settingsOf>, act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (thrown) {
    throw commandErrorOf(thrown, settings)
  }
}
