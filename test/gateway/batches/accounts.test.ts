import { expect, test } from 'vitest'
import { Accounts } from '../../../src/gateway/batches/accounts.ts'
import type { SavedKey } from '../../../src/gateway/byok/org-credentials.ts'
import type { CatalogSnapshot } from '../../../src/gateway/catalog/model.ts'
import type { GivenCredentials } from '../../../src/gateway/cloud/given-credentials.ts'
import type { Provider } from '../../../src/gateway/providers/provider.ts'
import type { Outbound } from '../../../src/platform/outbound/outbound.ts'
import { Secret } from '../../../src/platform/security/secret.ts'

test('a saved key goes to the address of the operator only when it is a key for that address', async () => {
  const provider = { id: 'cloud', baseUrl: 'https://operator.test/v1', configured: true } as Provider
  const saved: SavedKey = { key: new Secret('own-key'), alwaysUse: true, models: [] }
  const accountOf = (of: SavedKey) => {
    const org = { orgId: 1, retentionDays: 7, savedKeys: new Map([['cloud', of]]), customRoutes: new Map(), chains: new Map() }
    return new Accounts(
      {} as Outbound,
      () => ({ providers: new Map([['cloud', provider]]) }) as unknown as CatalogSnapshot,
      () => org,
    ).of({
      orgId: 1,
      provider: 'cloud',
      byok: true,
    })
  }
  expect((await accountOf(saved))?.provider).toBe(provider)
  expect(await accountOf({ ...saved, provider: { ...provider, baseUrl: 'https://own.test/v1', isOrgPlace: true } })).toBeNull()
  expect(await accountOf({ ...saved, credentials: {} as GivenCredentials })).toBeNull()
})
