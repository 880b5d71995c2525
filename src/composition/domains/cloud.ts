/** Constructs what authorises requests with credentials that expire. Nothing is loaded or fetched before the first call that needs it. */
import type { EntraProcess } from '../../gateway/cloud/entra.ts'
import { Identities } from '../../gateway/cloud/identities.ts'
import type { Config } from '../../platform/config.ts'
import type { AppParts } from '../parts.ts'

export function identitiesOf({ clock, config, outbound, memory }: Pick<AppParts, 'clock' | 'config' | 'outbound' | 'memory'>): Identities {
  return new Identities({
    clock,
    dial: request => outbound.toProvider(request),
    awsKeys: options => memory.awsKeys(options),
    entra: entraProcess(config),
    googleTokenUrl: config.GOOGLE_TOKEN_URL,
    entraLoginUrl: config.namedSecret('AZURE_AUTHORITY_HOST')?.reveal().replace(/\/+$/, '') ?? config.ENTRA_LOGIN_URL,
  })
}

/** Where virtual machines of Azure find their metadata service. */
const azureMetadataUrl = 'http://169.254.169.254'

/** Returns the variables by which Azure describes the identity of a process. They have the same names as in Azure's own programs. */
function entraProcess({ namedSecret }: Config): EntraProcess {
  const variable = (name: string): string | null => namedSecret(name)?.reveal() ?? null
  return {
    tenantId: variable('AZURE_TENANT_ID'),
    clientId: variable('AZURE_CLIENT_ID'),
    clientSecret: variable('AZURE_CLIENT_SECRET'),
    federatedTokenFile: variable('AZURE_FEDERATED_TOKEN_FILE'),
    identityEndpoint: variable('IDENTITY_ENDPOINT'),
    identityHeader: variable('IDENTITY_HEADER'),
    metadataUrl: variable('AZURE_POD_IDENTITY_AUTHORITY_HOST')?.replace(/\/+$/, '') ?? azureMetadataUrl,
  }
}
