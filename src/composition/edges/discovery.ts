import type { Catalog } from '../../gateway/catalog/catalog.ts'
import { routeId } from '../../gateway/catalog/model.ts'
import type { Discovery } from '../../gateway/http/documents/discovery.ts'
import type { Readiness } from '../../gateway/http/documents/health-endpoints.ts'
import { llmsTextOf } from '../../gateway/http/documents/llms-text.ts'
import { openApiOf } from '../../gateway/http/documents/openapi.ts'
import { PublicDocument } from '../../gateway/http/documents/public-document.ts'
import type { Binding } from '../../gateway/http/edge.ts'
import type { RouteCircuits } from '../../gateway/routing/circuits/route-circuits.ts'
import { openApiWebhooks } from '../../gateway/webhooks/events/openapi-webhooks.ts'
import { version } from '../../version.ts'

/** Constructs discovery: the endpoint table as OpenAPI and as text, and the current state of providers and routes. */
export function discoveryOf(catalog: Catalog, circuits: RouteCircuits, bindings: readonly Binding[], readiness: () => Readiness): Discovery {
  return {
    openApi: new PublicDocument(url => JSON.stringify(openApiOf(bindings, openApiWebhooks(), url, version))),
    llmsText: new PublicDocument(url => llmsTextOf(bindings, url)),
    health: () => ({
      status: statusOf(readiness()),
      version,
      providers: catalog.publicProviders().map(({ id, configured, residency }) => ({ id, configured, residency })),
      routes: [...catalog.snapshot.models.values()].flatMap(model =>
        model.kind === 'virtual'
          ? []
          : model.routes.map(route => {
              const available = circuits.available(routeId(route))
              return { model: model.id, provider: route.provider.id, available, circuit: available ? 'closed' : 'open' }
            }),
      ),
    }),
  }
}

/** Returns the state of the process for /health, as one word. The first failed check decides. */
function statusOf({ checks }: Readiness): 'ok' | 'draining' | 'database_away' | 'journal_full' {
  if (checks.process === 'draining') return 'draining'
  if (checks.database === 'away') return 'database_away'
  return checks.journal === 'full' ? 'journal_full' : 'ok'
}
