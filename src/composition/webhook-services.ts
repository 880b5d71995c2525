/** Constructs the webhook services. */

import { WebhookDeliveries } from '../gateway/webhooks/delivery/webhook-deliveries.ts'
import { Webhooks } from '../gateway/webhooks/webhooks.ts'
import type { AppParts } from './parts.ts'

export function webhookServices({ db, clock, ids, sealer, outbound, config, addressTests }: AppParts) {
  return {
    webhooks: new Webhooks({ db, clock, ids, sealer, guard: outbound.guard, addressTests, endpointsMax: config.WEBHOOK_ENDPOINTS_MAX }),
    webhookDeliveries: new WebhookDeliveries({ db, clock, ids, addressTests }),
  }
}
