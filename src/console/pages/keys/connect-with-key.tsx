import { useState } from 'react'
import { Button } from '../../ui/forms/button.tsx'
import { Dialog } from '../../ui/overlays/dialog.tsx'
import { Connect } from '../connect/connect.tsx'
import { type ConnectClient, text as connectText } from '../connect/text.ts'

interface ConnectWithKeyProps {
  /** Whether a key is made here. False: the person has one. */
  readonly offersKey: boolean
  readonly onClose: () => void
  /** The client that is shown first. */
  readonly first?: ConnectClient | undefined
}

/** How a client is connected with a key instead of an agent. */
export function ConnectWithKey({ offersKey, onClose, first = 'claude-code' }: ConnectWithKeyProps) {
  const [client, setClient] = useState<ConnectClient>(first)
  return (
    <Dialog title={connectText.title} width="lg" onClose={onClose} actions={<Button onClick={onClose}>{connectText.close}</Button>}>
      <Connect agent={null} client={client} onClient={setClient} offersKey={offersKey} />
    </Dialog>
  )
}
