/** Implements `brigade verify --tools`: reads day heads and the rows below them, and names the days whose rows or heads are not as they were signed. */
import type { GatewayClient } from '../../agents/toolkit/gateway-client.ts'
import { attestationKeysPath } from '../../gateway/compliance/attestation/attestation.ts'
import type { AuditHead, AuditRow } from '../../gateway/compliance/heads/audit-head-shape.ts'
import { DayRows, type HeadFault, headFaults, headsIn, keptFaults } from '../../gateway/compliance/heads/verify-heads.ts'
import { startOfIstDayMs } from '../../platform/values/ist-time.ts'
import { withGateway } from '../client-command.ts'
import { CommandError, wrongUsage } from '../command-error.ts'
import { plain, printJson, printLine } from '../command-output.ts'
import { contentOf, textOf } from '../memory/memory-content.ts'

/** The flags of the command. */
interface VerifyToolsFlags {
  readonly keys?: string
  readonly baseUrl?: string
  readonly keyFile?: string
  readonly json?: boolean
}

const path = '/v1/org/tool-audit'
const faultsShown = 50

/**
 * Compares the rows of the gateway with the heads of each day, and the heads with those of `file`, when somebody kept them. Throws CommandError 1
 * (`not_valid`) that names the days. Throws CommandError 2 when the file cannot be read.
 */
export async function verifyTools(file: string | undefined, flags: VerifyToolsFlags, keysOf: () => Promise<{ keys: unknown; from: string }>): Promise<void> {
  const kept = file === undefined ? [] : keptIn(textOf(await contentOf(file, undefined)), file)
  const { keys, from } = await keysOf()
  await withGateway(flags, async ({ client }) => {
    const heads = await allHeads(client)
    const faults = [...headFaults(kept, keys), ...headFaults(heads, keys), ...keptFaults(kept, heads)]
    let rows = 0
    const partial: string[] = []
    for (const head of heads) {
      const { count, found } = await rowsOf(client, head)
      rows += count
      faults.push(...found.faults)
      if (found.isPartial) partial.push(head.payload.day)
    }
    const days = [...new Set(faults.map(({ day }) => day))].sort()
    if (faults.length > 0)
      throw new CommandError(messageOf(days, faults), {
        code: 'not_valid',
        evidence: { valid: false, days, faults: faults.slice(0, faultsShown), keys_from: from },
      })
    if (flags.json === true) return printJson({ valid: true, keys_from: from, rows, days_not_compared: partial, heads })
    printLine(plain(`valid: ${heads.length} heads of days with ${rows} rows, with keys of ${from}`))
    if (partial.length > 0)
      printLine(
        plain(
          `not compared: ${partial.length} days, to ${partial.at(-1)}. The gateway says that rows of them were deleted by age, so only their heads were checked.`,
        ),
      )
    const [first, last] = [heads[0]?.payload.day, heads.at(-1)?.payload.day]
    if (first !== undefined) printLine(plain(`days: ${first} to ${last}. Keep the output of --json, and check it later: brigade verify heads.json --tools`))
  })
}

function messageOf(days: readonly string[], faults: readonly HeadFault[]): string {
  const first = faults.slice(0, 3).map(({ day, why }) => `${day}: ${why}`)
  return `not valid: ${days.slice(0, 10).join(', ')}${days.length > 10 ? ` and ${days.length - 10} more days` : ''}. ${first.join('. ')}.`
}

function keptIn(text: string, file: string): AuditHead[] {
  try {
    const heads = headsIn(JSON.parse(text))
    if (heads !== null) return heads
  } catch {
    // The error below says what the file must contain.
  }
  throw wrongUsage(`${file} holds no heads. brigade verify --tools --json prints them.`)
}

interface HeadsReply {
  readonly heads: readonly AuditHead[]
  readonly next_after: string | null
}

async function allHeads(client: GatewayClient): Promise<AuditHead[]> {
  const heads: AuditHead[] = []
  for (let after: string | undefined; ; ) {
    const page: HeadsReply = await client.json<HeadsReply>('GET', `${path}/heads`, { query: { after } })
    const read = headsIn(page)
    if (read === null) throw new CommandError(`the gateway answers with heads of another version. It publishes its keys at ${attestationKeysPath}.`)
    heads.push(...read)
    if (page.next_after === null) return heads
    after = page.next_after
  }
}

interface RowsReply {
  readonly rows: readonly AuditRow[]
  readonly next_cursor: string | null
  readonly calls_kept_from: string | null
  readonly acts_kept_from: string
}

async function rowsOf(client: GatewayClient, head: AuditHead): Promise<{ count: number; found: ReturnType<DayRows['compare']> }> {
  const { day } = head.payload
  const rows = new DayRows()
  let count = 0
  for (let cursor: string | undefined; ; ) {
    const page: RowsReply = await client.json<RowsReply>('GET', `${path}/rows`, { query: { day, cursor } })
    for (const row of page.rows) rows.add(row)
    count += page.rows.length
    if (page.next_cursor !== null) {
      cursor = page.next_cursor
      continue
    }
    const dayStart = new Date(startOfIstDayMs(day) ?? 0).toISOString()
    return { count, found: rows.compare(head, { callsKeptFrom: page.calls_kept_from, actsKeptFrom: page.acts_kept_from, dayStart }) }
  }
}
