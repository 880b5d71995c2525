/** Webhooks, as services of rows. */
import type { AppParts } from './app-services.ts'
import { WebhookDeliveries } from './gateway/webhooks/webhook-deliveries.ts'
import { Webhooks } from './gateway/webhooks/webhooks.ts'

export function webhookServices({ db, clock, ids, sealer, outbound, config }: AppParts) {
  return {
    webhooks: new Webhooks({ db, clock, ids, sealer, guard: outbound.guard, endpointsMax: config.WEBHOOK_ENDPOINTS_MAX }),
    webhookDeliveries: new WebhookDeliveries({ db, clock, ids }),
  }
}
