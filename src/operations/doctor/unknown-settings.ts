/** Names in the `.env` file that Brigade does not know. A slip there would otherwise leave a setting at its default without a word. */
import { existsSync, readFileSync } from 'node:fs'
import { basename } from 'node:path'
import { parseEnv } from 'node:util'
import { readIssuers, variablesOfIssuers } from '../../gateway/access/identity/issuer-file.ts'
import type { CatalogSnapshot } from '../../gateway/catalog/model.ts'
import type { Provider } from '../../gateway/providers/provider.ts'
import { type Config, providerVariableOf, settings, variablesOfProvider } from '../../platform/config.ts'
import { nearest } from '../../platform/nearest.ts'

/** Names that other programs read from the same file: Node, the SDKs of AWS, Azure and Google, OpenTelemetry, proxies and client commands. */
const ofOthers =
  /^(NODE_|npm_|AWS_|AZURE_|GOOGLE_APPLICATION_CREDENTIALS$|GOOGLE_CLOUD_|GCE_METADATA_|IDENTITY_(ENDPOINT|HEADER)$|OTEL_|BRIGADE|POSTGRES_|PG|XDG_|LC_|LANG$|TZ$|HOME$|PATH$|USER$|SHELL$|TERM$|CI$|DEBUG$|NO_COLOR$|FORCE_COLOR$|(HTTPS?|NO|ALL)_PROXY$)/i
/** More sentences than this help nobody. */
const saidMax = 20

const variablesFor = ({ id, keyVariable, address, identity }: Provider): readonly string[] => [
  ...variablesOfProvider(id),
  ...(keyVariable === undefined ? [] : [keyVariable]),
  ...(address?.names ?? []).map(name => providerVariableOf(id, name)),
  ...(identity === undefined ? [] : [providerVariableOf(id, 'identity'), providerVariableOf(id, 'region')]),
]

/**
 * Returns one sentence for each name of the `.env` file that is no setting, with the nearest known name. It never contains a value. The list is empty without
 * a file.
 */
export function unknownSettings(
  config: Pick<Config, 'ENV_FILE' | 'SIGN_IN_FILE' | 'namedSecret'>,
  { providers }: Pick<CatalogSnapshot, 'providers'>,
): string[] {
  const { ENV_FILE: file } = config
  if (file === null || !existsSync(file)) return []
  const known = new Set([
    ...Object.entries(settings).flatMap(([name, { kind }]) => (kind === 'secret' ? [name, `${name}_FILE`] : [name])),
    ...[...providers.values()].flatMap(provider => variablesFor(provider)),
    ...variablesOfIssuers(readIssuers(config)),
  ])
  return Object.keys(parseEnv(readFileSync(file, 'utf8')))
    .filter(name => !known.has(name) && !ofOthers.test(name))
    .slice(0, saidMax)
    .map(name => {
      const meant = nearest(name, known)
      return `${name} in ${basename(file)} is no setting of Brigade.${meant === null ? ' See docs/reference/config.md.' : ` Did you mean ${meant}?`}`
    })
}
