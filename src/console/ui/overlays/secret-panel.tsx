import { type ReactNode, useState } from 'react'
import { Code } from '../data/code.tsx'
import { download } from '../format/download.ts'
import { Button } from '../forms/button.tsx'
import { CopyButton } from '../forms/copy.tsx'
import { Tabs } from '../layout/tabs.tsx'
import { Dialog } from './dialog.tsx'

interface SecretPanelProps {
  readonly title: string
  readonly children: ReactNode
  readonly secret: string
  /** Name of the variable in the downloaded file. */
  readonly variable: string
  /** How clients use it: one tab each. */
  readonly clients: readonly { readonly id: string; readonly label: string; readonly text: string }[]
  readonly onDone: () => void
}

/** Shows a secret once. Only its own button closes it, so that a click outside cannot lose the secret. */
export function SecretPanel({ title, children, secret, variable, clients, onDone }: SecretPanelProps) {
  const [client, setClient] = useState(clients[0]?.id ?? '')
  const shown = clients.find(({ id }) => id === client)
  return (
    <Dialog
      title={title}
      width="lg"
      isDismissible={false}
      onClose={onDone}
      actions={
        <Button look="primary" onClick={onDone}>
          I have stored it
        </Button>
      }
    >
      <div className="prose">{children}</div>
      <div className="secret">
        <code className="secret-text">{secret}</code>
        <div className="secret-acts">
          <CopyButton text={secret} label="Copy" look="primary" />
          <Button icon="download" onClick={() => download('brigade.env', 'text/plain', `${variable}=${secret}\n`)}>
            Download .env
          </Button>
        </div>
      </div>
      {shown && (
        <div className="stack-3">
          <Tabs label="Clients" value={client} onChange={setClient} tabs={clients.map(({ id, label }) => ({ id, label }))}>
            <Code text={shown.text} />
          </Tabs>
        </div>
      )}
    </Dialog>
  )
}
