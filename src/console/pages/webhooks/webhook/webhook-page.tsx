import { getRouteApi, Link, useNavigate } from '@tanstack/react-router'
import { useCallback, useMemo, useState } from 'react'
import { apiErrorOf } from '../../../api/api-error.ts'
import { usePageCommands } from '../../../app/commands/command-list.ts'
import { hasRole, useMe } from '../../../app/me.tsx'
import { OnlyAdmins } from '../../../app/only-admins.tsx'
import { Button, LinkButton } from '../../../ui/forms/button.tsx'
import { Icon } from '../../../ui/icon.tsx'
import { Empty } from '../../../ui/layout/empty.tsx'
import { Page } from '../../../ui/layout/page.tsx'
import { Loaded, Panel } from '../../../ui/layout/panel.tsx'
import { Tabs } from '../../../ui/layout/tabs.tsx'
import { Menu, MenuItem } from '../../../ui/overlays/menu.tsx'
import { toast } from '../../../ui/overlays/toast.tsx'
import { text, webhookShown } from '../text.ts'
import { type EventType, useChangeWebhook, useTestWebhook, useWebhooks, type Webhook } from '../use-webhooks.ts'
import '../webhooks.css'
import { WebhookState } from '../webhooks-page.tsx'
import { Deliveries } from './deliveries.tsx'
import { DeliveryPeek } from './delivery-peek.tsx'
import type { WebhookSearch } from './search.ts'
import { DisableWebhook, RemoveWebhook, RotateSecret } from './webhook-dialogs.tsx'
import { WebhookSettings } from './webhook-settings.tsx'

const route = getRouteApi('/webhooks/$id')

/** One endpoint with its deliveries and settings. */
export function WebhookPage() {
  const isAdmin = hasRole(useMe(), 'admin')
  return isAdmin ? <Endpoint /> : <OnlyAdmins title={text.endpoint} icon="webhook" what={text.onlyAdmins} />
}

const above = (
  <nav className="crumbs" aria-label="Above this endpoint">
    <Link to="/webhooks">{text.title}</Link>
  </nav>
)

function Endpoint() {
  const { id } = route.useParams()
  const webhooks = useWebhooks()
  const found = webhooks.data?.webhooks.find(webhook => String(webhook.id) === id)
  if (found !== undefined && webhooks.data) return <KnownEndpoint key={found.id} webhook={found} events={webhooks.data.events} />
  return (
    <Page title={text.endpoint} above={above}>
      <Panel>
        <Loaded query={webhooks}>
          {() => (
            <Empty icon="webhook" title={text.gone} action={<LinkButton to="/webhooks">{text.title}</LinkButton>}>
              {text.goneHint}
            </Empty>
          )}
        </Loaded>
      </Panel>
    </Page>
  )
}

function KnownEndpoint({ webhook, events }: { readonly webhook: Webhook; readonly events: readonly EventType[] }) {
  const { id, url, description } = webhook
  const { tab = 'deliveries', delivery } = route.useSearch()
  const navigate = route.useNavigate()
  const leave = useNavigate()
  const [dialog, setDialog] = useState<'rotate' | 'disable' | 'remove' | null>(null)
  const show = useCallback((search: WebhookSearch) => void navigate({ search, replace: true, resetScroll: false }), [navigate])
  const close = (): void => setDialog(null)
  const actions = <Acts webhook={webhook} onTested={did => show({ delivery: did })} onAsk={setDialog} />
  return (
    <Page title={hostOf(url)} above={above} intro={<Intro webhook={webhook} />} actions={actions}>
      <Notes webhook={webhook} />
      <Tabs
        label={description === '' ? text.endpoint : description}
        value={tab}
        onChange={next => show(next === 'settings' ? { tab: 'settings' } : {})}
        tabs={(['deliveries', 'settings'] as const).map(each => ({ id: each, label: text.tabs[each] }))}
      >
        <div className="webhook-tab">
          {tab === 'deliveries' && <Deliveries id={id} open={delivery} onOpen={did => show({ delivery: did })} />}
          {tab === 'settings' && <WebhookSettings webhook={webhook} events={events} />}
        </div>
      </Tabs>
      {delivery !== undefined && <DeliveryPeek key={delivery} webhook={webhook} did={delivery} onClose={() => show({})} />}
      {dialog === 'rotate' && <RotateSecret webhook={webhook} onClose={close} />}
      {dialog === 'disable' && <DisableWebhook webhook={webhook} onClose={close} />}
      {dialog === 'remove' && <RemoveWebhook webhook={webhook} onClose={close} onRemoved={() => void leave({ to: '/webhooks' })} />}
    </Page>
  )
}

/** Returns the host of an address, which is what a person recognises. */
const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : url)

function Intro({ webhook }: { readonly webhook: Webhook }) {
  const { url, description, subscribe_all: all, event_types: types } = webhook
  return (
    <span className="webhook-facts">
      <WebhookState webhook={webhook} />
      <code>{url}</code>
      <span>{all ? `${text.allEvents} events` : text.someEvents(types.length)}</span>
      {description !== '' && <span>{description}</span>}
    </span>
  )
}

interface ActsProps {
  readonly webhook: Webhook
  readonly onTested: (delivery: string) => void
  readonly onAsk: (dialog: 'rotate' | 'disable' | 'remove') => void
}

function Acts({ webhook, onTested, onAsk }: ActsProps) {
  const { mutate: test, isPending: isTesting } = useTestWebhook(webhook.id, ({ id }) => {
    toast(text.tested)
    onTested(id)
  })
  const send = useCallback(() => test(undefined, { onError: error => toast(apiErrorOf(error).message, 'bad') }), [test])
  usePageCommands(
    useMemo(
      () => (webhook.enabled ? [{ id: 'test-webhook', label: text.test, group: text.title, icon: 'play' as const, keys: 'n', run: send }] : []),
      [webhook.enabled, send],
    ),
  )
  return (
    <>
      {webhook.enabled && (
        <Button look="primary" icon="play" isBusy={isTesting} onClick={send}>
          {text.test}
        </Button>
      )}
      <Menu label={text.more} trigger={<Icon name="more" />}>
        <MenuItem icon="rotate" onClick={() => onAsk('rotate')}>
          {text.rotate}…
        </MenuItem>
        {webhook.enabled && (
          <MenuItem icon="pause" onClick={() => onAsk('disable')}>
            {text.disable}…
          </MenuItem>
        )}
        <MenuItem icon="trash" isDanger onClick={() => onAsk('remove')}>
          {text.remove}…
        </MenuItem>
      </Menu>
    </>
  )
}

/** What a person must know before they look at deliveries: why the endpoint is off, and which events it missed. */
function Notes({ webhook }: { readonly webhook: Webhook }) {
  const enable = useChangeWebhook(webhook.id, () => toast(text.enabled))
  return (
    <>
      {!webhook.enabled && (
        <section className="webhook-note" aria-label={text.endpoint}>
          <p>{webhookShown(webhook).means}</p>
          <Button
            look="primary"
            icon="play"
            isBusy={enable.isPending}
            onClick={() => enable.mutate({ enabled: true }, { onError: error => toast(apiErrorOf(error).message, 'bad') })}
          >
            {text.enable}
          </Button>
        </section>
      )}
      {webhook.dropped > 0 && (
        <section className="webhook-note" aria-label={text.columns.dropped}>
          <p>{text.dropped(webhook.dropped)}</p>
        </section>
      )}
    </>
  )
}
