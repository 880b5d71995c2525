import { useMutation, useQuery } from '@tanstack/react-query'
import { apiErrorOf } from '../../api/api-error.ts'
import { api, type ReplyOf } from '../../api/call.ts'
import { apiQuery, invalidate } from '../../api/queries.ts'
import { Status, Tag } from '../../ui/data/status.tsx'
import { Time } from '../../ui/data/time.tsx'
import { Button } from '../../ui/forms/button.tsx'
import { InlineError } from '../../ui/layout/error-panel.tsx'
import { Loaded, Panel } from '../../ui/layout/panel.tsx'
import { keyWords, testText, text } from './text.ts'

type KeyedProvider = ReplyOf<'operatorProviderKeys'>['providers'][number]

/** The provider keys of the operator with their tests. No part of a key is shown. */
export function ProviderKeysPanel() {
  const keys = useQuery(apiQuery('operatorProviderKeys'))
  return (
    <Panel title={text.keys} note={text.keysNote}>
      <Loaded query={keys}>
        {({ providers }) =>
          providers.length === 0 ? (
            <p className="quiet">{text.keysNone}</p>
          ) : (
            <ul className="health-rows">
              {providers.map(provider => (
                <KeyRow key={provider.id} provider={provider} />
              ))}
            </ul>
          )
        }
      </Loaded>
    </Panel>
  )
}

function KeyRow({ provider }: { readonly provider: KeyedProvider }) {
  const test = useMutation({
    mutationFn: () => api('testPlatformKey', { path: { provider: provider.id } }),
    onSuccess: () => invalidate('operatorProviderKeys'),
    // The gateway says how long to wait, and a person decides whether to test again.
    retry: false,
  })
  const last = provider.last_test
  return (
    <li>
      <div className="health-row">
        <p className="health-name">
          <strong>{provider.name}</strong>
          <Tag>{provider.residency}</Tag>
          {last && <Status tone={keyWords[last.status].tone}>{keyWords[last.status].name}</Status>}
        </p>
        <Button size="sm" aria-label={text.testOf(provider.name)} isBusy={test.isPending} onClick={() => test.mutate()}>
          {text.testKey}
        </Button>
      </div>
      <p className="quiet">
        {last ? (
          <>
            {testText(last)} <Time at={last.tested_at} />
          </>
        ) : (
          text.untested
        )}
      </p>
      {test.error && <InlineError error={apiErrorOf(test.error)} />}
    </li>
  )
}
