import type { Command } from 'commander'
import { addClientFlags, addExamples, withGateway } from '../client-command.ts'
import type { ClientFlags } from '../client-settings.ts'
import { printFields, printJson } from '../command-output.ts'

interface Whoami {
  readonly principal: { readonly kind: string; readonly id: number; readonly name: string }
  readonly org: { readonly id: number; readonly name: string }
  readonly user: { readonly id: number } | null
  readonly workspace_id: number | null
  readonly key: { readonly id: number; readonly name: string }
  readonly role: string | null
  readonly scope: string
  readonly token_expires_at: string | null
  readonly limits: { readonly rpm_limit: number | null; readonly daily_limit: number | null }
  readonly credit: { readonly balance_inr: number; readonly trial: boolean } | null
  readonly memory: { readonly configured: boolean }
  readonly version: string
}

/** Adds the command `brigade whoami`. */
export function addWhoamiCommand(program: Command): void {
  const command = addClientFlags(program.command('whoami').description('say who the credential is: organisation, key or agent, scope, limits'))
  addExamples(command, [
    ['brigade whoami', 'as the key of brigade login, or of $BRIGADE_KEY'],
    ['brigade whoami --json', 'the same for programs'],
  ])
  command.action((flags: ClientFlags) =>
    withGateway(flags, async ({ client }) => {
      const me = await client.json<Whoami>('GET', '/v1/me/whoami')
      if (flags.json === true) printJson(me)
      else printFields(fieldsOf(me, client.baseUrl))
    }),
  )
}

function fieldsOf(me: Whoami, baseUrl: string): Record<string, string> {
  const perTime = (limit: number | null, unit: string): string => (limit === null ? `any number a ${unit}` : `${limit} a ${unit}`)
  return {
    [me.principal.kind]: `${me.principal.name} (id ${me.principal.id})`,
    ...(me.principal.kind === 'agent' ? { 'by key': `${me.key.name} (id ${me.key.id})` } : {}),
    organisation: `${me.org.name} (id ${me.org.id})`,
    user: me.user === null ? 'none' : `id ${me.user.id}${me.role === null ? '' : `, ${me.role}`}`,
    ...(me.workspace_id === null ? {} : { workspace: `id ${me.workspace_id}` }),
    scope: me.scope,
    ...(me.token_expires_at === null ? {} : { expires: me.token_expires_at }),
    requests: `${perTime(me.limits.rpm_limit, 'minute')}, ${perTime(me.limits.daily_limit, 'day')}`,
    ...(me.credit === null ? {} : { credit: me.credit.trial ? 'on trial: free on models that the platform runs in India' : `₹${me.credit.balance_inr}` }),
    memory: me.memory.configured ? 'configured' : 'not configured',
    gateway: `${baseUrl}, version ${me.version}`,
  }
}
