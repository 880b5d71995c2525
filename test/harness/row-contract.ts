import { errorsOf } from '../../src/gateway/http/documents/openapi.ts'
import type { Binding } from '../../src/gateway/http/edge.ts'
import { oauthErrorCode } from '../../src/gateway/http/oauth-wire.ts'
import { bindingsOf, endpointTable } from '../../src/gateway/http/rows/endpoint-table.ts'
import { errorTable } from '../../src/platform/errors.ts'

interface Row {
  readonly binding: Binding
  readonly method: string
  readonly path: RegExp
  readonly codes: ReadonlySet<string>
}

const patternOf = (path: string): RegExp =>
  new RegExp(
    `^${path
      .replace(/[.]/g, '\\.')
      .replace(/\{\w+\+\}/g, '.+')
      .replace(/\{\w+\}/g, '[^/]+')}$`,
  )

const rows: readonly Row[] = bindingsOf(endpointTable).map(binding => {
  const [method = '', path = ''] = binding.at.split(' ')
  return { binding, method, path: patternOf(path), codes: new Set(errorsOf(binding).map(name => `${errorTable[name].status} ${errorTable[name].code}`)) }
})

/** Returns the row that serves a request. A literal path has priority over a pattern, and a pattern with more segments over a shorter one. */
function rowOf(method: string, path: string): Row | undefined {
  const found = rows.filter(row => row.method === method && row.path.test(path))
  return found.find(row => !row.binding.at.includes('{')) ?? found.sort((a, b) => segments(b) - segments(a))[0]
}

const segments = ({ binding }: Row): number => binding.at.split('/').length

/**
 * Checks every reply against its endpoint row. A 2xx JSON body must match the output schema of the row. An error of the gateway must have a status and code
 * that the row names. Relayed errors of a provider are not checked.
 */
export function checkAgainstRow(method: string, url: string, status: number, json: unknown): void {
  const row = rowOf(method, url.split('?')[0] ?? '')
  if (row === undefined || typeof json !== 'object' || json === null) return
  const { binding, codes } = row
  if (status >= 200 && status < 300) {
    if ('media' in binding.row.output) return
    const parsed = binding.row.output.safeParse(json)
    if (!parsed.success) throw new Error(`${binding.at} answered what its row does not declare: ${JSON.stringify(parsed.error.issues.slice(0, 3))}`)
    return
  }
  if (binding.row.clients === 'oauth') {
    const declared = errorsOf(binding).map(name => `${errorTable[name].status} ${oauthErrorCode(name)}`)
    const seen = `${status} ${String((json as { error?: unknown }).error)}`
    if (!declared.includes(seen) && status !== 405) throw new Error(`${binding.at} answered ${seen}, which its row does not declare`)
    return
  }
  const code: unknown = (json as { error?: { code?: unknown } }).error?.code
  const known = Object.values(errorTable).some(entry => entry.code === code && entry.status === status)
  if (known && !codes.has(`${status} ${String(code)}`)) throw new Error(`${binding.at} answered ${status} ${String(code)}, which its row does not declare`)
}
