import type { AuditTrail } from '../../gateway/audit/audit.ts'
import { type CreateWebhooksDeps, createWebhooks, type WebhookServices } from '../../gateway/webhooks/create-webhooks.ts'
import { version } from '../../version.ts'
import type { AppDeps } from '../deps.ts'

/** Connects webhooks to the audit trail. */
export function webhookServices(
  deps: AppDeps & Pick<CreateWebhooksDeps, 'outbound' | 'sealer' | 'mail' | 'addressTests' | 'baseUrl'> & { readonly audit: AuditTrail },
): WebhookServices {
  return createWebhooks({
    ...deps,
    userAgent: `Brigade-Webhooks/${version}`,
    onDisabled: (tx, orgId, endpointId) =>
      deps.audit.recordIn(tx, { orgId, actor: 'system', act: 'disableWebhook', target: `webhook=${endpointId}`, sourceIp: null, requestId: null }, 'ok'),
  })
}
