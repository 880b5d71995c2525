import type { Catalog } from './gateway/catalog/catalog.ts'
import { routeId } from './gateway/catalog/model.ts'
import type { Discovery } from './gateway/http/discovery.ts'
import type { Binding } from './gateway/http/edge.ts'
import { llmsTextOf } from './gateway/http/llms-text.ts'
import { openApiOf } from './gateway/http/openapi.ts'
import type { Circuits } from './gateway/routing/circuit.ts'
import { openApiWebhooks } from './gateway/webhooks/openapi-webhooks.ts'
import { version } from './version.ts'

/** What the gateway tells of itself: the table as OpenAPI and as text, the live state of providers and routes. */
export function discoveryOf(catalog: Catalog, circuits: Circuits, bindings: readonly Binding[]): Discovery {
  return {
    openApi: url => openApiOf(bindings, openApiWebhooks(), url, version),
    llmsText: url => llmsTextOf(bindings, url),
    health: () => ({
      status: 'ok',
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
