import { useQuery } from '@tanstack/react-query'
import type { ReactNode } from 'react'
import { apiQuery } from '../../api/queries.ts'
import { Code } from '../../ui/data/code.tsx'
import { Facts } from '../../ui/data/facts.tsx'
import { Status } from '../../ui/data/status.tsx'
import { count, percent, shortMoney } from '../../ui/format/numbers.ts'
import { LinkButton } from '../../ui/forms/button.tsx'
import { Loaded } from '../../ui/layout/panel.tsx'
import { Peek } from '../../ui/overlays/peek.tsx'
import { curlCall } from '../connect/snippets.ts'
import { duration } from '../playground/text.ts'
import { previewBody, usualCall } from '../routing/preview/preview-body.ts'
import { PreviewResult } from '../routing/preview/preview-result.tsx'
import '../routing/routing.css'
import type { Model } from '../steps/use-models.ts'
import { callableOf, type Route, routeState } from './callable.ts'
import { pricesOf } from './prices.ts'
import { text } from './text.ts'

interface ModelPeekProps {
  /** Null: the catalog has no such model. */
  readonly model: Model | null
  readonly ownKeys: ReadonlySet<string>
  readonly onClose: () => void
}

/** One model beside the list: whether it can be called, what it costs, who serves it, and how it did lately. */
export function ModelPeek({ model, ownKeys, onClose }: ModelPeekProps) {
  if (model !== null) return <KnownModel model={model} ownKeys={ownKeys} onClose={onClose} />
  return (
    <Peek title={text.title} onClose={onClose}>
      <p className="quiet">{text.unknown}</p>
    </Peek>
  )
}

function KnownModel({ model, ownKeys, onClose }: ModelPeekProps & { readonly model: Model }) {
  const { tone, icon, name, means, needsKey } = callableOf(model, ownKeys)
  const isVirtual = model.kind === 'virtual'
  const isChat = model.kind === 'chat' || isVirtual
  const prices = pricesOf(model)
  return (
    <Peek
      title={model.id}
      subtitle={model.owned_by}
      onClose={onClose}
      actions={
        <>
          {isChat && (
            <LinkButton icon="chat" to="/playground" search={{ model: model.id }}>
              {text.playground}
            </LinkButton>
          )}
          {!isVirtual && (
            <LinkButton icon="split" to="/routing/chain" search={{ model: model.id }}>
              {text.chain}
            </LinkButton>
          )}
          <LinkButton icon="usage" to="/usage" search={{ model: model.id }}>
            {text.usage}
          </LinkButton>
        </>
      }
    >
      <div className="stack-3">
        <p className="model-state">
          <Status tone={tone} icon={icon}>
            {name}
          </Status>
          <span className="quiet">{means}</span>
        </p>
        {needsKey && (
          <div>
            <LinkButton size="sm" to="/providers">
              {text.toProviders}
            </LinkButton>
          </div>
        )}
      </div>
      {isVirtual && (
        <Section title={text.picks}>
          <PreviewResult body={previewBody(model.id, model.kind, usualCall)} />
        </Section>
      )}
      {prices.length > 0 && (
        <Section title={text.prices}>
          <Facts facts={prices} />
          <Compared model={model} />
        </Section>
      )}
      {!isVirtual && <Routes model={model} ownKeys={ownKeys} />}
      <ModelFacts model={model} />
      {!isVirtual && <Lately id={model.id} />}
      {isChat && <Code label={text.call} text={curlCall(location.origin, null, model.id)} />}
    </Peek>
  )
}

function Section({ title, children }: { readonly title: string; readonly children: ReactNode }) {
  return (
    <section className="stack-3" aria-label={title}>
      <h3>{title}</h3>
      {children}
    </section>
  )
}

function ModelFacts({ model }: { readonly model: Model }) {
  const rankings = useQuery(apiQuery('rankings'))
  const { kind, context_length: reads, max_output_tokens: writes, modalities, languages, reasoning_efforts: efforts = [], openness, dimensions } = model
  const rank = rankings.data?.windows['30d'].find(one => one.model === model.id)?.rank
  const facts: [string, ReactNode][] = [[text.facts.kind, text.kinds[kind]]]
  if (reads !== null) facts.push([text.facts.context, text.tokens(count(reads))])
  if (writes !== null) facts.push([text.facts.output, text.tokens(count(writes))])
  if (modalities.length > 0) facts.push([text.facts.modalities, modalities.join(', ')])
  if (languages.length > 0) facts.push([text.facts.languages, languages.join(', ')])
  if (efforts.length > 0) facts.push([text.facts.reasoning, efforts.join(', ')])
  if (openness !== undefined) facts.push([text.facts.openness, text.openness[openness]])
  if (dimensions !== undefined) facts.push([text.facts.dimensions, count(dimensions)])
  if (rank !== undefined) facts.push([text.facts.rank, count(rank)])
  return <Facts facts={facts} />
}

function Routes({ model: { routes }, ownKeys }: { readonly model: Model; readonly ownKeys: ReadonlySet<string> }) {
  return (
    <Section title={text.routes}>
      {routes.length === 0 ? (
        <p className="quiet">{text.noRoutes}</p>
      ) : (
        <ul className="model-routes">
          {routes.map(one => (
            <li key={`${one.provider}/${one.model ?? ''}`}>
              <code>{one.provider}</code>
              <span className="quiet tabular nowrap">{routePrice(one)}</span>
              <RouteStatus route={one} ownKeys={ownKeys} />
            </li>
          ))}
        </ul>
      )}
      {routes.length > 0 && <p className="quiet">{text.routesAbout}</p>}
    </Section>
  )
}

const routePrice = ({ inputINRPerMtok: input, outputINRPerMtok: output }: Route): string =>
  input === 0 && output === 0 ? text.free : `${shortMoney(input)} / ${shortMoney(output)}`

function RouteStatus({ route, ownKeys }: { readonly route: Route; readonly ownKeys: ReadonlySet<string> }) {
  const { tone, icon, name, means } = routeState(route, ownKeys)
  return (
    <Status tone={tone} icon={icon} title={means}>
      {name}
    </Status>
  )
}

/** How the model did in the last seven days, for everybody on this gateway. */
function Lately({ id }: { readonly id: string }) {
  const stats = useQuery(apiQuery('modelStats', { path: { id } }))
  return (
    <Section title={text.lately}>
      <Loaded query={stats}>
        {({ requests, success_rate: rate, p50_latency_ms: half, p95_latency_ms: most, tokens_per_second: speed }) =>
          requests === 0 ? (
            <p className="quiet">{text.latelyNone}</p>
          ) : (
            <Facts
              facts={[
                [text.calls, count(requests)],
                ...(rate === null ? [] : [[text.answered, percent(rate)] as const]),
                ...(half === null ? [] : [[text.half, duration(half)] as const]),
                ...(most === null ? [] : [[text.most, duration(most)] as const]),
                ...(speed === null ? [] : [[text.speed, count(speed)] as const]),
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  )
}

/** The price beside a public one, where the operator has a source for it. */
function Compared({ model: { id } }: { readonly model: Model }) {
  const compared = useQuery({ ...apiQuery('comparePrices', { query: { model: id } }), retry: false })
  const rows = compared.data?.models ?? []
  if (rows.length === 0) return null
  return (
    <>
      <p className="quiet">{text.comparedAbout(compared.data?.source ?? '')}</p>
      <Facts
        facts={rows.map(({ provider, compared_with: other }) => [provider, `${shortMoney(other.inputINRPerMtok)} / ${shortMoney(other.outputINRPerMtok)}`])}
      />
    </>
  )
}
