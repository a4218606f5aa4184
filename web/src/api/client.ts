/** Requests to the HTTP interface, on the console's own origin. */
import type { Session } from "../session";
import type { Body, Params, PathWith, Result } from "./calls";
import type { components } from "./schema";

type ErrorDetail = components["schemas"]["ErrorDetail"];

/** What the interface answered instead of a result, or why it could not be reached. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** HTTP status; 0 if no answer came. */
    readonly status: number,
    readonly code: string,
    readonly requestId: string | null = null,
    /** Seconds to wait before the next request; null if the server does not say. */
    readonly waitSeconds: number | null = null,
  ) {
    super(message);
  }

  /** Whatever was thrown, as an ApiError. */
  static of(reason: unknown): ApiError {
    return reason instanceof ApiError ? reason : new ApiError(String(reason), 0, "Unknown");
  }

  /** The error that a body of the API describes; its message has the details too. */
  static described(error: ErrorDetail, status: number, waitSeconds: number | null = null): ApiError {
    return new ApiError(error.message, status, error.code, error.requestId ?? null, waitSeconds);
  }

  get isOffline(): boolean {
    return this.code === "Unreachable";
  }
}

export class Client {
  constructor(private readonly session: Session) {}

  get<P extends PathWith<"get">>(
    path: P,
    params: Params<"get", P>,
    signal?: AbortSignal,
  ): Promise<Result<"get", P>> {
    return this.json("GET", address(path, params), undefined, signal);
  }

  /** Follow the link to a picture that a response has. */
  follow(link: string, signal?: AbortSignal): Promise<Result<"get", "/api/view">> {
    return this.json("GET", link, undefined, signal);
  }

  post<P extends PathWith<"post">>(
    path: P,
    body: Body<"post", P>,
    signal?: AbortSignal,
  ): Promise<Result<"post", P>> {
    return this.json("POST", path, body, signal);
  }

  put<P extends PathWith<"put">>(
    path: P,
    params: Params<"put", P>,
    body?: Body<"put", P>,
  ): Promise<Result<"put", P>> {
    return this.json("PUT", address(path, params), body);
  }

  patch<P extends PathWith<"patch">>(
    path: P,
    params: Params<"patch", P>,
    body: Body<"patch", P>,
  ): Promise<Result<"patch", P>> {
    return this.json("PATCH", address(path, params), body);
  }

  delete<P extends PathWith<"delete">>(path: P, params: Params<"delete", P>): Promise<Result<"delete", P>> {
    return this.json("DELETE", address(path, params));
  }

  /** Send a request whose response is read as it arrives. */
  open<P extends PathWith<"post">>(path: P, body: Body<"post", P>, signal: AbortSignal): Promise<Response> {
    return this.send("POST", path, body, signal);
  }

  /** Send a deletion that continues when the page is left; its answer is not read. */
  deleteAndLeave<P extends PathWith<"delete">>(path: P, params: Params<"delete", P>): void {
    this.send("DELETE", address(path, params), undefined, undefined, true).catch(() => undefined);
  }

  /** Send a request, and throw an ApiError for everything but success. */
  private async send(
    method: string,
    path: string,
    body?: unknown,
    signal?: AbortSignal,
    keepalive = false,
  ): Promise<Response> {
    let proof: Record<string, string>;
    try {
      proof = await this.session.headers();
    } catch (error) {
      throw this.noted(error);
    }
    const headers = body === undefined ? proof : { ...proof, "Content-Type": "application/json" };
    let response: Response;
    try {
      response = await fetch(`.${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal ? { signal } : {}),
        cache: "no-store",
        keepalive,
      });
    } catch (error) {
      if (signal?.aborted) throw error;
      const text = navigator.onLine ? "The server does not answer. Is it running?" : "You are offline.";
      throw new ApiError(text, 0, "Unreachable");
    }
    if (!response.ok) throw this.noted(await failure(response));
    return response;
  }

  /** Note that the API does not accept the proof, so that the frame offers to sign in. */
  private noted(error: unknown): unknown {
    if (error instanceof ApiError && error.status === 401) this.session.end(error);
    return error;
  }

  private async json<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const response = await this.send(method, path, body, signal);
    return (await response.json()) as T;
  }
}

/** Fill the path's parameters in, and append the others as query; those without a value are left out. */
function address(path: string, params: object): string {
  const values = new Map<string, unknown>(Object.entries(params));
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => {
    const value = encodeURIComponent(String(values.get(name)));
    values.delete(name);
    return value;
  });
  const given = [...values].filter(([, value]) => value !== null && value !== undefined && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text ? `${filled}?${text}` : filled;
}

async function failure(response: Response): Promise<ApiError> {
  const wait = Number(response.headers.get("retry-after")) || null;
  try {
    const { error } = await response.json();
    return ApiError.described(error, response.status, wait);
  } catch {
    const text = `The server answered with HTTP ${response.status}`;
    return new ApiError(text, response.status, "Unknown", null, wait);
  }
}
