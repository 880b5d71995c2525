/** Checks every statement of the product against the schema. Each must parse, and must be limited to an organisation unless this file gives a reason. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { allStatements } from '../../src/platform/db/db.ts'
import { testDatabase } from '../harness/database.ts'
import { orgOwnedTables } from './schema-dump.ts'

const database = await testDatabase()
const { db } = database
const src = fileURLToPath(new URL('../../src/', import.meta.url))

/** What limits a statement to the caller's organisation: a comparison with a parameter, a column of inserted rows, or a column of the requested rows. */
const scopedBy = [/\borg_id = \$1::int\b/, /\binsert into \w+( as \w+)? \([^)]*\borg_id\b/, /\bunnest\([^)]*\)( with ordinality)? as \w+ ?\(org_id\b/]

/** Statements on tables of organisations without such a limit, each with its reason. A row that is no longer needed fails the test too. */
const exceptions: Readonly<Record<string, string>> = {
  'limits.delete_old_requests': 'sweep of what is too old in all organisations',
  'webhooks.count_backlog': 'for the operator, over the whole installation',
  'access.find_session': 'the hash of a presented cookie says which session it is',
  'access.list_sessions': 'the sessions of the signed-in person, in all of their organisations',
  'access.end_own_session': 'a session of the signed-in person, by the person and its id',
  'access.end_other_sessions': 'all other sessions of the signed-in person',
  'access.note_use_of_session': 'by the hash of the cookie of the caller',
  'agents.find_holders': 'the control log names agents of any organisation; the result says whose each one is',
  'keys.find_holders': 'the control log names keys of any organisation; the result says whose each one is',
  'access.revoke_session': 'by the hash of the cookie of the caller',
  'access.delete_old_sessions': 'sweep of what has run out',
  'access.take_cli_code': 'the hash of a code and its verifier say who asks; the code names its organisation',
  'access.delete_old_cli_codes': 'sweep of what has run out in all organisations',
  'access.starting_org': 'over all organisations of the person who signs in',
  'orgs.insert_invited_person': 'the operator names an address that some organisation has invited',
  'orgs.list_sign_in_grant_orgs': 'over all organisations of the person who signs in',
  'orgs.has_membership': 'over all organisations of the person who signs in',
  'byok.find_server_owner': 'the number of a server in the name of its circuit says whose it is',
  'usage.count_model_users': 'counts the organisations that use a model, over all of them, without any of their names',
  'usage.clear_agent_days': 'sums of one day are made again, over all organisations',
  'usage.clear_days': 'sums of one day are made again, over all organisations',
  'usage.clear_key_days': 'sums of one day are made again, over all organisations',
  'usage.clear_key_weeks': 'sums of the week of one day are made again, over all organisations',
  'usage.clear_key_model_days': 'sums of one day are made again, over all organisations',
  'usage.clear_caller_days': 'sums of one day are made again, over all organisations',
  'usage.clear_member_days': 'sums of one day are made again, over all organisations',
  'usage.clear_caller_hours': 'sums of one day are made again, over all organisations',
  'usage.clear_day_latencies': 'sums of one day are made again, over all organisations',
  'usage.clear_hour_latencies': 'sums of one day are made again, over all organisations',
  'usage.disagreeing_days': 'for the operator, over the whole installation',
  'usage.sum_up_model_days': 'sums over all organisations, without any of their names',
  'usage.sum_up_model_latencies': 'sums over all organisations, without any of their names',
  'usage.sum_last_hour': 'sweep over the usage of all organisations',
  'usage.list_anomalies': 'sweep over the usage of all organisations',
  'usage.last_summed_hour': 'sweep over the usage of all organisations',
  'usage.delete_old_hours': 'sweep of what is too old in all organisations',
  'usage.delete_old_events': 'sweep of what is too old in all organisations',
  'usage.delete_old_caller_hours': 'sweep of what is too old in all organisations',
  'usage.delete_old_hour_latencies': 'sweep of what is too old in all organisations',
  'usage.add_to_runs': 'flush of one process over all organisations, by the keys of its runs',
  'limits.violations_of_run_counters': 'for the doctor, over the whole installation',
  'limits.violations_of_run_sums': 'for the doctor, over the whole installation',
  'usage.set_run_caps': 'by the row of a run that the transaction has locked',
  'usage.find_runs_with_caps': 'a starting process must know the runs with caps of all organisations',
  'usage.find_resting_runs': 'sweep of what is too old in all organisations',
  'usage.lock_resting_runs': 'sweep of what is too old in all organisations',
  'usage.unset_capped': 'sweep of what is too old in all organisations',
  'usage.lock_run_number': 'by the row of a run that the call has found',
  'usage.find_run_ends': 'a starting process must know the ended runs of all organisations',
  'usage.delete_old_runs': 'sweep of what is too old in all organisations',
  'usage.delete_old_run_days': 'sweep of what is too old in all organisations',
  'usage.delete_old_run_ends': 'sweep of what is too old in all organisations',
  'usage.delete_old_refused_calls': 'sweep of what is too old in all organisations',
  'collections.claim_due_rounds': 'rounds of the whole installation are run by whoever finds them',
  'collections.delete_old_health': 'sweep of what is too old in all organisations',
  'collections.delete_old_checks': 'sweep of what is too old in all organisations',
  'collections.delete_old_canaries': 'sweep of what is too old in all organisations',
  'webhooks.list_subscribers': 'events of the whole gateway go to every organisation that subscribes',
  'content.delete_expired': 'sweep of what has run out in all organisations',
  'reply_cache.delete_expired': 'sweep of what has run out in all organisations',
  'once.end_by_event': 'flush of one process over all organisations, by the ids of its events',
  'once.end_of_dead': 'keys of one dead process over all organisations',
  'once.delete_expired': 'sweep of what has run out in all organisations',
  'audit.scan_installation_lines': 'for the operator, lines of no organisation',
  'audit.end_line': 'by the id of a line that the caller began',
  'audit.delete_old_lines': 'sweep of what is too old in all organisations',
  'mail.claim_mails': 'the outbox of the whole installation is sent by whoever finds it',
  'mail.mark_sent': 'by the id of a claimed mail',
  'mail.retry_later': 'by the id of a claimed mail',
  'mail.mark_failed': 'by the id of a claimed mail',
  'mail.count_mails': 'for the operator, over the whole installation',
  'mail.read_outbox': 'for the operator, over the whole installation',
  'mail.list_unsent': 'for the operator, over the whole installation, without addresses and texts',
  'orgs.list_all_by_newest': 'for the operator, over the whole installation',
  'orgs.list_all_by_oldest': 'for the operator, over the whole installation',
  'orgs.list_all_by_name': 'for the operator, over the whole installation',
  'orgs.find_first_owner': 'the owner of the first organisation, for the sign-in link that the terminal of the operator shows',
  'usage.totals_of_orgs': 'for the operator, sums of the organisations of one page',
  'mail.delete_old_mails': 'sweep of what is too old in all organisations',
  'keys.find_id_by_hash': 'the hash of a presented key says which organisation it is',
  'keys.find_for_auth': 'the id comes from that hash or from a signed token',
  'keys.begin_trials': 'billing was switched on: over all organisations that never had credit',
  'keys.find_idle': 'sweep over the keys of all organisations',
  'keys.touch': 'flush of one process over all organisations, by id',
  'orgs.find_own_invitation': 'the address of the signed-in person says which invitations are theirs',
  'orgs.list_own_invitations': 'the address of the signed-in person says which invitations are theirs',
  'orgs.count_founders': 'looks at the founders of all organisations, to judge routes that they share',
  'orgs.find_founder': 'finds the founder of an organisation by its id',
  'orgs.list_own_orgs': 'the organisations of one person',
  'agents.find_rules': 'the id comes from a signed token',
  'agents.pause_states': 'a starting process must know the paused agents of all organisations',
  'agents.recent_epochs': 'a starting process must know the dead tokens of all organisations',
  'trust.lock_audience': 'says whose the pair of issuer and audience is, which may be another organisation',
  'trust.matching': 'issuer and audience of a presented token say which organisation it is',
  'revoked_tokens.live': 'a starting process must know the dead tokens of all organisations',
  'revoked_tokens.delete_expired': 'sweep of what has run out in all organisations',
  'billing.lock_order': 'the id of an order comes under a signature of the payment provider, and says whose it is',
  'billing.find_payment': 'the id of a payment comes under a signature of the payment provider; its order says whose it is',
  'billing.order_of_payment': 'the id of a payment comes under a signature of the payment provider; its order says whose it is',
  'billing.count_move': 'the id of a return comes under a signature of the payment provider',
  'billing.list_returns': 'the id of a payment comes under a signature of the payment provider',
  'billing.list_unpaid': 'sweep over the orders of all organisations',
  'billing.count_flagged': 'for the operator, over the whole installation',
  'billing.find_for_operator': 'the operator names a payment, whoever made it',
  'billing.violations_of_bonuses': 'check of the whole database',
  'billing.violations_of_captures': 'check of the whole database',
  'billing.violations_of_promos': 'check of the whole database',
  'billing.violations_of_returns': 'check of the whole database',
  'billing.violations_of_series': 'check of the whole database',
  'billing.violations_of_uncaptured': 'check of the whole database',
  'batches.cancel_revoked': 'for the poller, over all organisations',
  'batches.claim': 'for the poller, over all organisations',
  'batches.delete_old': 'sweep of what has ended in all organisations',
  'batches.end_claim': 'by the id of a batch that the process claimed',
  'batches.find_expired_files': 'sweep of what has ended in all organisations',
  'batches.find_rivals': 'batches of one account of a provider, which all organisations share',
  'batches.insert_batch': 'the row has the organisation',
  'batches.insert_files': 'the rows have the organisation',
  'batches.renew_claim': 'by the id of a batch that the process claimed',
  'batches.set_upstream': 'by the id of a batch that the process just made or claimed',
  'batches.settle': 'by the id of a batch that the process claimed',
  'batches.violations_of_events': 'check of the whole database',
  'batches.violations_of_holds': 'check of the whole database',
  'limits.delete_lasting_holds': 'by the owner of the holds, whose row names the organisation',
  'limits.insert_lasting_holds': 'by counter ids that were locked just before',
  'limits.unspend': 'by counter ids that were locked just before',
  'limits.acquire': 'by counter ids that the process got for its organisation before',
  'limits.find_org_limits': 'by the id of the organisation itself',
  'limits.find_evidence': 'by counter ids that the process got before',
  'limits.list_silent': 'what dead processes hold, for the operator, over the whole installation',
  'once.free_of': 'keys of one process that the operator gives up, over all organisations',
  'once.list_in_doubt': 'calls without a known end, for the operator, over the whole installation',
  'limits.lock_counters': 'flush of one process over all organisations, by counter id',
  'limits.settle_counters': 'flush of one process over all organisations, by counter id',
  'limits.set_cap': 'by the id of a counter that was locked for its organisation just before',
  'limits.set_limit_cap': 'by counter id',
  'limits.sync_caps': 'by counter ids',
  'limits.delete_ended_counters': 'sweep of what has ended in all organisations',
  'limits.lock_leased_counters': 'leases of one dead process over all organisations',
  'limits.return_silent_running': 'leases of silent processes over all organisations',
  'limits.return_all_leases': 'leases of one dead process over all organisations',
  'limits.violations_of_crossings': 'check of the whole database',
  'limits.violations_of_debits': 'check of the whole database',
  'limits.violations_of_running': 'check of the whole database',
  'limits.violations_of_families': 'check of the whole database',
  'limits.violations_of_leases': 'check of the whole database',
  'limits.violations_of_periods': 'check of the whole database',
  'limits.violations_of_prepaid': 'check of the whole database',
  'limits.violations_of_spend': 'check of the whole database',
  'memory.doom_old_versions': 'sweep of old versions, in all organisations',
  'memory.doom_versions_over_quota': 'sweep of old versions, in all organisations',
  'memory.doomed_versions': 'sweep of old versions, in all organisations',
  'memory.expired_intents': 'sweep of writes whose process died, in all organisations',
  'memory.claim_reconciles': 'job over the stores of all organisations',
  'memory.claim_purges': 'job over the stores of all organisations',
  'memory.read_changes': 'one process reads for all organisations that it has listeners of',
  'memory.delete_old_changes': 'sweep of what is too old in all organisations',
  'memory.list_stores': 'sweep over the stores of all organisations',
  'sealed.count_provider_keys_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_provider_keys_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_provider_keys_sealed': 'change of the master key, over all organisations',
  'sealed.replace_provider_keys_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_custom_endpoints_key_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_custom_endpoints_key_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_custom_endpoints_key_sealed': 'change of the master key, over all organisations',
  'sealed.replace_custom_endpoints_key_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_tool_server_credentials_value_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_tool_server_credentials_value_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_tool_server_credentials_value_sealed': 'change of the master key, over all organisations',
  'sealed.replace_tool_server_credentials_value_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_tool_oauth_clients_secret_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_tool_oauth_clients_secret_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_tool_oauth_clients_secret_sealed': 'change of the master key, over all organisations',
  'sealed.replace_tool_oauth_clients_secret_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_tool_connections_access_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_tool_connections_access_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_tool_connections_access_sealed': 'change of the master key, over all organisations',
  'sealed.replace_tool_connections_access_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_tool_connections_refresh_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_tool_connections_refresh_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_tool_connections_refresh_sealed': 'change of the master key, over all organisations',
  'sealed.replace_tool_connections_refresh_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_tool_oauth_states_verifier_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_tool_oauth_states_verifier_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_tool_oauth_states_verifier_sealed': 'change of the master key, over all organisations',
  'sealed.replace_tool_oauth_states_verifier_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_webhook_endpoints_secret_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_webhook_endpoints_secret_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_webhook_endpoints_secret_sealed': 'change of the master key, over all organisations',
  'sealed.replace_webhook_endpoints_secret_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_memory_stores_sealed_credentials': 'for the operator: counts the values under each master key',
  'sealed.list_first_memory_stores_sealed_credentials': 'change of the master key, over all organisations',
  'sealed.list_next_memory_stores_sealed_credentials': 'change of the master key, over all organisations',
  'sealed.replace_memory_stores_sealed_credentials': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_reply_cache_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_reply_cache_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_reply_cache_sealed': 'change of the master key, over all organisations',
  'sealed.replace_reply_cache_sealed': 'change of the master key, by the primary key of a row that was listed',
  'sealed.count_content_log_sealed': 'for the operator: counts the values under each master key',
  'sealed.list_first_content_log_sealed': 'change of the master key, over all organisations',
  'sealed.list_next_content_log_sealed': 'change of the master key, over all organisations',
  'sealed.replace_content_log_sealed': 'change of the master key, by the primary key of a row that was listed',
  'tools.list_tool_orgs': 'the job that signs day heads takes every organisation with servers in turn',
  'tools.claim_ended_connection': 'connections of the whole installation are revoked by whoever finds them',
  'tools.delete_old_oauth_states': 'sweep of what is too old in all organisations',
  'tools.claim_due_server': 'MCP servers of the whole installation are read by whoever finds them',
  'webhooks.endpoints_with_work': 'deliveries of the whole installation are sent by whoever finds them',
  'webhooks.lock_open_endpoints': 'by the ids of endpoints that have something to send',
  'webhooks.claim_deliveries': 'of endpoints that the claim holds',
  'webhooks.end_deliveries_of_closed': 'by the ids of endpoints that nobody sends to',
  'webhooks.delete_settled_deliveries': 'sweep of what is too old in all organisations',
  'collections.count_forks': 'by the id of a row that the transaction holds',
  'collections.count_stars': 'by the id of a row that the transaction holds',
  'collections.find_public': 'public, whoever has it',
  'collections.list_public': 'public, whoever has it',
  'collections.list_public_of_model': 'public, whoever has it',
  'collections.list_public_versions': 'public, whoever has it',
  'webhooks.count_waiting': 'of one endpoint, which was found by its organisation',
  'webhooks.delete_old_events': 'sweep of what is too old in all organisations',
}

/** Statements that are prepared in one request, because a request of its own for each took half a minute. */
const together = 50

const product = (): readonly { name: string; text: string }[] => allStatements().filter(made => !made.name.startsWith('test.'))
const withoutComments = (sql: string): string => sql.replace(/\/\*.*?\*\/|--[^\n]*/gs, ' ')

beforeAll(async () => {
  const files = readdirSync(src, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts') && !/^console[\\/]/.test(name))
  const declaring = files.filter(name => /\bstatement(<|\()/.test(readFileSync(join(src, name), 'utf8')))
  // The list of sealed columns declares a set of statements for each column.
  for (const name of [...declaring, 'operations/master-keys.ts']) await import(pathToFileURL(join(src, name)).href)
  // If a queries.ts declared no statement, the search above would not recognise how its statements are declared.
  expect(files.filter(name => /(^|[\\/])queries\.ts$/.test(name)).filter(name => !declaring.includes(name))).toEqual([])
})
afterAll(() => database.dispose())

test('every statement can be prepared against the migrated database', async () => {
  expect(product().length).toBeGreaterThan(80)
  const wrong: string[] = []
  const prepare = (texts: readonly string[]): Promise<void> =>
    db.script(texts.map(text => `prepare statement_under_test as ${text}; deallocate statement_under_test`).join(';\n'))
  const all = product()
  for (let from = 0; from < all.length; from += together) {
    const some = all.slice(from, from + together)
    if (
      await prepare(some.map(({ text }) => text)).then(
        () => true,
        () => false,
      )
    )
      continue
    // One of them is wrong. Alone, each says what.
    for (const { name, text } of some) await prepare([text]).catch((error: Error) => wrong.push(`${name}: ${error.message}`))
  }
  expect(wrong).toEqual([])
}, 120_000)

test('the name of every statement begins with its domain', () => {
  expect(
    product()
      .map(made => made.name)
      .filter(name => !/^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z0-9]+)*$/.test(name)),
  ).toEqual([])
})

test('every statement on a table of organisations takes the organisation as a parameter, or is listed as an exception', async () => {
  const owned = await orgOwnedTables(db)
  expect(owned).toEqual(expect.arrayContaining(['agents', 'api_keys', 'memory_objects', 'usage_events']))
  const touched = new RegExp(`\\b(from|join|into|update|using)\\s+(only\\s+)?(${owned.join('|')})\\b`, 'i')
  const unscoped = product()
    .map(made => ({ name: made.name, sql: withoutComments(made.text) }))
    .filter(({ sql }) => touched.test(sql) && !scopedBy.some(pattern => pattern.test(sql)))
    .map(({ name }) => name)
  expect(unscoped.sort()).toEqual(Object.keys(exceptions).sort())
})
