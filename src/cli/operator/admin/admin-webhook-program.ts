import type { Command } from 'commander'
import { printJson, printLine, printResult, printTable } from '../../command-output.ts'
import { count } from '../../option-values.ts'

type RunAdmin = (command: { name: string; args: Readonly<Record<string, unknown>> }) => Promise<object>

interface ShownWebhook {
  readonly id: number
  readonly org_id: number
  readonly host: string
  readonly enabled: boolean
  readonly disabled_reason: string | null
  readonly failures: number
  readonly open: number
  readonly oldest_at: string | null
}

/** Adds the commands `brigade admin webhooks …`. `runAdmin` runs a command in the process that owns the database. */
export function addWebhookCommands(admin: Command, runAdmin: RunAdmin): void {
  const webhooks = admin.command('webhooks').description('the webhook endpoints of organisations, and the deliveries that are still to be sent')
  webhooks
    .command('list')
    .description('endpoints, those in trouble first')
    .option('--org <id>', 'of this organisation only', count)
    .option('--json', 'print JSON')
    .action(async ({ json, ...args }: { json?: boolean }) => {
      const shown = (await runAdmin({ name: 'webhooks-list', args })) as { webhooks: readonly ShownWebhook[] }
      if (json === true) printJson(shown)
      else printWebhooks(shown.webhooks)
    })
  webhooks
    .command('backlog')
    .description('deliveries that are still to be sent, and how late they are')
    .option('--json', 'print JSON')
    .action(async ({ json }: { json?: boolean }) => printResult(await runAdmin({ name: 'webhooks-backlog', args: {} }), json === true))
}

function printWebhooks(webhooks: readonly ShownWebhook[]): void {
  if (webhooks.length === 0) {
    printLine('there is no webhook')
    return
  }
  printTable(
    [
      { head: 'ID', align: 'right' },
      { head: 'ORG', align: 'right' },
      { head: 'STATE' },
      { head: 'FAILED', align: 'right' },
      { head: 'TO SEND', align: 'right' },
      { head: 'OLDEST' },
      { head: 'HOST' },
    ],
    webhooks.map(({ id, org_id: orgId, enabled, disabled_reason: reason, failures, open, oldest_at: oldest, host }) => [
      String(id),
      String(orgId),
      enabled ? 'enabled' : `disabled (${reason ?? ''})`,
      String(failures),
      String(open),
      oldest ?? '',
      host,
    ]),
  )
}
