// node-ipc 14 has no types. This file declares what ipc.ts uses; no other file imports node-ipc.
declare module "node-ipc" {
  class IPC {
    config: Record<string, unknown>;
    of: Record<string, unknown>;
    server: unknown;
    serve(path: string, callback?: () => void): void;
    serveNet(host: string, port: number): void;
    connectTo(id: string, path: string, callback?: () => void): void;
    connectToNet(id: string, host: string, port: number): void;
    disconnect(id: string): void;
  }
  const nodeIpc: { readonly IPC: typeof IPC };
  export default nodeIpc;
}
